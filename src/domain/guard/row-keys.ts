import { inboxProvider } from '../model/delivery.ts'
import { guardHashForm, type Sender } from '../model/guard.ts'
import { indexHash, type Keys } from '../model/keys.ts'
import { isInRange, parseRange, wideNetworkOf } from '../model/network.ts'
import type { RestrictedNumberType } from '../model/numbering-plans.ts'
import { isVirtualPhone, noCountry } from '../model/phone.ts'
import type { Price } from '../model/price.ts'
import type { Channel, OtpRequest } from '../model/request.ts'
import type { Listing } from '../model/list-rule.ts'
import type { ChallengeAnswer } from './challenge.ts'
import { isTrustedPhone, refusedChannels, violatedListRules, type GuardSettings } from './settings.ts'
import { hourOf } from './subject.ts'
import type { GuardRows } from '../store/guard.ts'
import { utcDay } from '../../shared/durations.ts'
import { canonicalPhone } from '../../shared/spellings.ts'

/** Fields of a request that the guard uses. */
export type GuardedRequest = Pick<
  OtpRequest,
  'developerId' | 'environment' | 'phone' | 'country' | 'clientIp' | 'provider' | 'createdAt' | 'resends'
>

/** A request, or a message whose code another system made. */
export type CountedMessage = GuardedRequest & { isRelayed?: boolean }

/** A message to judge. */
export type GuardedMessage = CountedMessage & {
  numberType: RestrictedNumberType | null
  /** Channels that it may take; undefined is SMS alone. */
  channels?: readonly Channel[]
  /** Verdict of the developer's rules; undefined if none was asked for. */
  listing?: Listing
  /** The only countries that get messages of the application, besides the operator's; null or undefined: all. */
  appCountries?: readonly string[] | null
  /** Estimates what the message costs; null: unknown. Undefined: nothing. */
  estimatePrice?: () => Price | null
  /** Undefined if the caller cannot show challenges. */
  challenge?: ChallengeAnswer | undefined
}

/** Keys of the subjects of a message. Those of prefix and network are hashes; that of the device is its context. */
export type SubjectKeys = {
  country: string
  prefix: string
  network: string | undefined
  device: string | undefined
  /** Messages that left beyond the allowances of their countries. */
  pool: string
}

/** Keys of a message with the code of another system: what its country and what all countries got of them, and the country. */
export type RelayKeys = { volume: string; all: string; country: string }

/** Keys of the rows that one call of the guard reads. */
export type GuardKeys = {
  /** Undefined if nothing is counted, since the phone is known. */
  subjects?: SubjectKeys
  /** Set for a message with the code of another system that is counted. */
  relay?: RelayKeys
  /** Histories of the codes of other systems, set for one that the developer's rules allow: it becomes usual. */
  usual?: readonly string[] | undefined
  /** Messages of the installation on a day, and their cost, where they have a limit. */
  total?: string | undefined
  spend?: string | undefined
  /** Solved challenge that came with the message. */
  challenge?: string | undefined
}

/** Names the rows of codes of other systems that have a usual rate. */
const volumesOf = ({ volume, all }: RelayKeys) => [volume, all]

/** Names the rows that a call always reads. */
export function firstNames({ subjects, relay, usual = [], ...others }: GuardKeys): string[] {
  const names = [subjects, relay, others].flatMap((part) => Object.values(part ?? {}))
  return [...new Set([...names, ...usual].filter((name) => name !== undefined))]
}

/** Names all rows that a call may read: also the histories that take up the last hour of a country, or of relays. */
export function namesOf(rows: GuardRows, keys: GuardKeys, now: number): string[] {
  const { subjects, relay } = keys
  const counted = relay ? volumesOf(relay) : subjects ? [subjects.country] : []
  const due = counted.filter((name) => rows.row(name)?.windows.hour !== hourOf(now))
  return [...firstNames(keys), ...due.map(historyKey)]
}

export const countryKey = (developerId: string, country: string | null) =>
  `${developerId} ${country ?? noCountry}`
/** After those of countries, in the order of keys. */
export const poolKey = (developerId: string) => `${developerId} pool`
export const relayKey = (developerId: string, country: string | null) =>
  `${countryKey(developerId, country)} relay`
/** Codes of other systems to all countries. */
const relaysKey = (developerId: string) => `${developerId} relays`
/** Row of the usual rate of a country. */
export const historyKey = (country: string) => `${country} history`

/** Names the row of the prefix of a phone: the number without its last four digits, the same for every spelling. */
export const prefixKey = (keys: Pick<Keys, 'guard'>, developerId: string, phone: string) =>
  hashOf(keys, developerId, 'prefix', canonicalPhone(phone).slice(0, -4))

const hashOf = (keys: Pick<Keys, 'guard'>, developerId: string, kind: string, value: string) =>
  indexHash(keys.guard, `${developerId} ${kind} ${value}`, guardHashForm)

/**
 * Creates the names of the rows that a call of the guard reads. Settings exempt some requests; those have none. The sender is
 * the same at each call for a request: as at its send.
 */
export function createGuardRowKeys(settings: GuardSettings, keys: Pick<Keys, 'guard'>) {
  const { mode, trusted, totalPerDay, spendPerDay } = settings
  const trustedRanges = trusted.addresses.map(parseRange)

  /** Tells whether the settings exempt a message: it is neither judged nor counted. */
  function isExempt({ environment, phone, clientIp, provider }: GuardedRequest): boolean {
    return (
      mode === 'off' ||
      // Inbox messages cost nothing. Mode `enforce` judges them too, so that operators can test rules without
      // a provider.
      (mode === 'monitor' && provider === inboxProvider) ||
      environment === 'test' ||
      isVirtualPhone(phone) ||
      isTrustedPhone(settings, phone) ||
      (clientIp !== null && isInRange(clientIp, trustedRanges))
    )
  }

  function toSubjects(
    { developerId, phone, country, clientIp }: GuardedRequest,
    { contexts }: Sender,
  ): SubjectKeys {
    const network = clientIp === null ? undefined : wideNetworkOf(clientIp)
    return {
      country: countryKey(developerId, country),
      prefix: prefixKey(keys, developerId, phone),
      network: network === undefined ? undefined : hashOf(keys, developerId, 'network', network),
      device: contexts[network === undefined ? 0 : 1],
      pool: poolKey(developerId),
    }
  }

  const relayKeys = ({ developerId, country }: CountedMessage): RelayKeys => ({
    volume: relayKey(developerId, country),
    country: countryKey(developerId, country),
    all: relaysKey(developerId),
  })

  const keysOfCaps = (now: number): GuardKeys => ({
    total: totalPerDay > 0 ? `total ${utcDay(now)}` : undefined,
    spend: spendPerDay > 0 ? `spend ${utcDay(now)}` : undefined,
  })

  const keysOfCounts = (message: CountedMessage, sender: Sender): GuardKeys =>
    message.isRelayed ? { relay: relayKeys(message) } : { subjects: toSubjects(message, sender) }

  return {
    isExempt,

    /** Lists the channels that a message must not take: an SMS to a number that cannot read it. */
    refusedChannels: (message: GuardedMessage): readonly Channel[] =>
      isExempt(message) || message.listing?.allowedBy === 'phone'
        ? []
        : refusedChannels(settings, message.numberType),

    /** Names the rows of `judge`. @returns undefined if the request is exempt */
    keysToJudge(message: GuardedMessage, sender: Sender, now: number): GuardKeys | undefined {
      if (isExempt(message)) return undefined
      // A list that forbids the message decides alone.
      if (mode === 'enforce' && violatedListRules(settings, message).length > 0) return {}
      const { challenge, isRelayed, listing } = message
      return {
        ...(sender.isKnownPhone ? {} : keysOfCounts(message, sender)),
        usual: isRelayed && listing?.allowedBy ? volumesOf(relayKeys(message)).map(historyKey) : undefined,
        ...keysOfCaps(now),
        challenge: challenge?.outcome === 'passed' && !sender.isKnownPhone ? challenge.once : undefined,
      }
    },

    /** Names the rows of `convert`. @returns undefined if the request is exempt, or changes nothing */
    keysToConvert(request: CountedMessage, sender: Sender, now: number): GuardKeys | undefined {
      if (isExempt(request)) return undefined
      // A phone is evidence once a day, where it is verified first: one phone must not make many networks known.
      if (sender.isKnownPhone && utcDay(sender.verifiedAt) === utcDay(now)) return undefined
      const subjects = toSubjects(request, sender)
      return request.isRelayed && !sender.isKnownPhone
        ? { subjects, relay: relayKeys(request) }
        : { subjects }
    },

    /** Names the rows of `revert`. @returns undefined if the request is exempt */
    keysToRevert: (request: CountedMessage, sender: Sender): GuardKeys | undefined =>
      isExempt(request)
        ? undefined
        : { ...(sender.isKnownPhone ? {} : keysOfCounts(request, sender)), ...keysOfCaps(request.createdAt) },
  }
}

/** Time at which a phone was last verified from a network or device; 0 if it was not. */
export const verifiedFrom = ({ verifiedFrom: contexts }: Sender, key: string): number =>
  contexts.find(({ hash }) => hash === key)?.verifiedAt ?? 0
