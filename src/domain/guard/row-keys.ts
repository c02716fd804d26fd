import { utcDay } from '../log/analytics.ts'
import { inboxProvider } from '../model/delivery.ts'
import { deviceOf } from '../model/context.ts'
import { guardHashForm, type Sender } from '../model/guard.ts'
import { indexHash, type Keys } from '../model/keys.ts'
import { isInRange, parseRange, wideNetworkOf } from '../model/network.ts'
import type { RestrictedNumberType } from '../model/number-type.ts'
import { isVirtualPhone, noCountry } from '../model/phone.ts'
import type { Price } from '../model/price.ts'
import type { Channel, OtpRequest } from '../model/request.ts'
import type { Listing } from '../model/list-rule.ts'
import type { ChallengeAnswer } from './challenge.ts'
import { isTrustedPhone, refusedChannels, violatedListRules, type GuardSettings } from './settings.ts'

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
}

/** Keys of a message with the code of another system: what its country got of such messages, and the country. */
export type RelayKeys = { volume: string; country: string }

/** Keys of the rows that one call of the guard reads. */
export type GuardKeys = {
  /** Undefined if nothing is counted, since the phone is known. */
  subjects: SubjectKeys | undefined
  /** Set for a message with the code of another system that is counted. */
  relay?: RelayKeys | undefined
  /** Row of the messages that left beyond the allowances of their countries. */
  pool: string
  /** Row of the messages of the installation; undefined without a daily cap. */
  total: string | undefined
  /** Row of the cost of those messages; undefined without a budget. */
  spend: string | undefined
  /** Row of the solved challenge that came with the message. */
  challenge?: string | undefined
  /** Time of a message that is judged. */
  judgedAt: number | undefined
}

export type GuardRowKeys = ReturnType<typeof createGuardRowKeys>

export const countryKey = (developerId: string, country: string | null) =>
  `${developerId} ${country ?? noCountry}`
/** After those of countries, in the order of keys. */
export const poolKey = (developerId: string) => `${developerId} pool`
export const relayKey = (developerId: string, country: string | null) =>
  `${countryKey(developerId, country)} relay`
/** Row of the usual rate of a country. */
export const historyKey = (country: string) => `${country} history`

/** Names the row of the prefix of a phone: the number without its last four digits. */
export const prefixKey = (keys: Pick<Keys, 'guard'>, developerId: string, phone: string) =>
  hashOf(keys, developerId, 'prefix', phone.slice(0, -4))

const hashOf = (keys: Pick<Keys, 'guard'>, developerId: string, kind: string, value: string) =>
  indexHash(keys.guard, `${developerId} ${kind} ${value}`, guardHashForm)

/**
 * Creates the names of the rows that a call of the guard reads. Settings exempt some requests; those have none. The sender is
 * the same at each call for a request: as at its send.
 */
export function createGuardRowKeys(settings: GuardSettings, keys: Pick<Keys, 'guard'>) {
  const { mode, trusted, totalPerDay, spendPerDay } = settings
  const trustedRanges = trusted.addresses.map(parseRange)

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

  function toSubjects(request: GuardedRequest, { contexts }: Sender): SubjectKeys {
    const { developerId, phone, country, clientIp } = request
    const network = clientIp === null ? undefined : wideNetworkOf(clientIp)
    return {
      country: countryKey(developerId, country),
      prefix: prefixKey(keys, developerId, phone),
      network: network === undefined ? undefined : hashOf(keys, developerId, 'network', network),
      device: deviceOf({ clientIp, contexts }),
    }
  }

  const toKeys = ({ developerId }: GuardedRequest, subjects?: SubjectKeys): GuardKeys => ({
    subjects,
    pool: poolKey(developerId),
    total: undefined,
    spend: undefined,
    judgedAt: undefined,
  })

  const relayKeys = ({ developerId, country }: CountedMessage): RelayKeys => ({
    volume: relayKey(developerId, country),
    country: countryKey(developerId, country),
  })

  const keysOfCounts = (message: CountedMessage, sender: Sender): GuardKeys =>
    message.isRelayed
      ? { ...toKeys(message), relay: relayKeys(message) }
      : toKeys(message, toSubjects(message, sender))

  return {
    /** Lists the channels that a message must not take: an SMS to a number that cannot read it. */
    refusedChannels: (message: GuardedMessage): readonly Channel[] =>
      isExempt(message) || message.listing?.allowedBy === 'phone'
        ? []
        : refusedChannels(settings, message.numberType),

    /** Names the rows of `judge`. @returns undefined if the request is exempt */
    keysToJudge(message: GuardedMessage, sender: Sender, now: number): GuardKeys | undefined {
      if (isExempt(message)) return undefined
      // A list that forbids the message decides alone.
      if (mode === 'enforce' && violatedListRules(settings, message).length > 0)
        return { ...toKeys(message), judgedAt: now }
      const total = totalPerDay > 0 ? `total ${utcDay(now)}` : undefined
      const spend = spendPerDay > 0 ? `spend ${utcDay(now)}` : undefined
      if (sender.isKnownPhone) return { ...toKeys(message), total, spend, judgedAt: now }
      const challenge = solutionOf(message)?.key
      return { ...keysOfCounts(message, sender), total, spend, challenge, judgedAt: now }
    },

    /** Names the rows of `convert`. @returns undefined if the request is exempt, or changes nothing */
    keysToConvert(request: CountedMessage, sender: Sender, now: number): GuardKeys | undefined {
      if (isExempt(request)) return undefined
      const subjects = toSubjects(request, sender)
      // Most phones of today have been counted.
      if (sender.isKnownPhone && isEvidence(sender, subjects, utcDay(now))) return undefined
      const relay = request.isRelayed && !sender.isKnownPhone ? relayKeys(request) : undefined
      return { ...toKeys(request, subjects), relay }
    },

    /** Names the rows of `revert`. @returns undefined if the request is exempt or was not counted */
    keysToRevert: (request: CountedMessage, sender: Sender): GuardKeys | undefined =>
      isExempt(request) || sender.isKnownPhone ? undefined : keysOfCounts(request, sender),
  }
}

/** Names the row of the solution that otpd checked itself, if one came with a message. */
export const solutionOf = ({ challenge }: Pick<GuardedMessage, 'challenge'>) =>
  challenge?.outcome === 'passed' ? challenge.once : undefined

/** Tells whether the phone was counted on a day already, for all subjects. */
function isEvidence(sender: Sender, { network, device }: SubjectKeys, day: number): boolean {
  const isOn = (at: number) => utcDay(at) === day
  return isOn(sender.verifiedAt) && [network, device].every((key) => !key || isOn(verifiedFrom(sender, key)))
}

/** Time at which a phone was last verified from a network or device; 0 if it was not. */
export const verifiedFrom = ({ verifiedFrom: contexts }: Sender, key: string): number =>
  contexts.find(({ hash }) => hash === key)?.verifiedAt ?? 0
