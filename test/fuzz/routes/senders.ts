import { allowances } from '../../../src/domain/guard/allowances.ts'
import { evidenceDays } from '../../../src/domain/model/guard.ts'
import { dayMs } from '../../../src/shared/durations.ts'

/** An attack with codes that are never verified, so that a carrier seems to deliver none. Each goes to a new phone. */
export type Poisoning = {
  country: string
  /** Codes for each one of a customer. */
  perCode: number
  /** Pause before the next ones. */
  pauseMs: number
  /** Whether it sends only while customers have the carrier that is truly the best. */
  isAdaptive: boolean
  /** Whether each code is sent again as often as possible. */
  resends: boolean
  /** Different networks of the sender, or those that customers on mobile networks share. */
  networks: number | 'shared'
}

/** Sender of a code. `isKnown` as at the send. */
export type Sender = { network: Network | undefined; isKnown: boolean }

/** Messages of a day and phones of two weeks, with exponential decay instead of the guard's windows. */
type Network = { unverified: number; evidence: number; at: number }

/** Share of the customers who come back with a phone that they verified before. */
const returning = 0.25
/** Share of the customers on mobile networks, where a few serve a whole country. */
const mobile = 0.5
const sharedNetworks = 8

/**
 * Draws the senders of codes: customers and attackers. Home networks of customers have no evidence: there are so many that
 * hardly any serves two customers within two weeks.
 */
export function createSenders(random: () => number) {
  const networks = new Map<string, Network>()

  function networkAt(name: string, now: number): Network {
    let network = networks.get(name)
    if (!network) networks.set(name, (network = { unverified: 0, evidence: 0, at: now }))
    const days = (now - network.at) / dayMs
    network.unverified *= Math.exp(-days)
    network.evidence *= Math.exp(-days / evidenceDays)
    network.at = now
    return network
  }
  const drawShared = (country: string, now: number) =>
    networkAt(`${country} ${Math.floor(random() * sharedNetworks)}`, now)

  /** Counts a message to a phone that was not verified before. */
  function send(network: Network): Sender {
    const isKnown = network.unverified < network.evidence / evidenceDays
    network.unverified++
    return { network, isKnown }
  }

  return {
    customer(country: string, now: number): Sender {
      if (random() < returning) return { network: undefined, isKnown: true }
      return random() < mobile ? send(drawShared(country, now)) : { network: undefined, isKnown: false }
    },

    /** @returns undefined if the guard refuses the code: too many of its network are unverified */
    attacker(attack: Poisoning, now: number): Sender | undefined {
      const network =
        attack.networks === 'shared'
          ? drawShared(attack.country, now)
          : networkAt(`rented ${Math.floor(random() * attack.networks)}`, now)
      const { base, perPhone } = allowances.network
      return network.unverified < base + perPhone * network.evidence ? send(network) : undefined
    },

    verify({ network }: Sender): void {
      if (!network) return
      network.unverified = Math.max(0, network.unverified - 1)
      network.evidence++
    },
  }
}
