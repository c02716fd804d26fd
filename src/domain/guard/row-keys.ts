import { utcDay } from '../log/analytics.ts'
import { inboxProvider } from '../model/delivery.ts'
import { guardHashForm, type Sender } from '../model/guard.ts'
import { indexHash, type Keys } from '../model/keys.ts'
import { isInRange, parseRange, wideNetworkOf } from '../model/network.ts'
import type { CostlyNumberType } from '../model/number-type.ts'
import { isVirtualPhone } from '../model/phone.ts'
import type { OtpRequest } from '../model/request.ts'
import { noCountry, violatedListRules, type GuardSettings } from './rules.ts'

/** Fields of a request that the guard uses. */
export type GuardedRequest = Pick<
  OtpRequest,
  'developerId' | 'environment' | 'phone' | 'country' | 'clientIp' | 'provider' | 'createdAt' | 'resends'
>

/** A message to judge. */
export type GuardedMessage = GuardedRequest & { costlyType: CostlyNumberType | null }

/** A prefix or a network: its hash, and the keys of its counts. */
export type CountedSubject = {
  hash: string
  /** Key of the counts of the day of the message. */
  today: string
  /** Key of those of the day before; undefined if they are not read. */
  before: string | undefined
}

/** Keys of the counts of a stranger's message. */
export type CountedKeys = { country: string; prefix: CountedSubject; network: CountedSubject | undefined }

/** Keys of the rows that one call of the guard reads. */
export type GuardKeys = {
  /** Undefined if the message is not counted, since the phone is known. */
  counted: CountedKeys | undefined
  /** Contexts of the end user, and the network. */
  contexts: readonly string[]
  /** Key of the messages of the installation; undefined without a daily cap. */
  total: string | undefined
  /** Time of a message that is judged. */
  judgedAt: number | undefined
}

/** Names the rows that a call of the guard reads. The sender is the same at each call for a request: as at its send. */
export type GuardRowKeys = {
  /** Names the rows to read before `judge`. @returns undefined if the request is exempt */
  keysToJudge(message: GuardedMessage, sender: Sender, now: number): GuardKeys | undefined
  /** Names the rows to read before `convert`. @returns undefined if the request is exempt */
  keysToConvert(request: GuardedRequest, sender: Sender): GuardKeys | undefined
  /** Names the rows to read before `revert`. @returns undefined if the request is exempt or was not counted */
  keysToRevert(request: GuardedRequest, sender: Sender): GuardKeys | undefined
}

const noKeys: GuardKeys = { counted: undefined, contexts: [], total: undefined, judgedAt: undefined }

/** Key of the counts of a subject on a UTC day. It starts with the day, so that old rows are one range. */
const toCountsKey = (day: number, subject: string) => `${day} ${subject}`

/** Subject of the messages of the whole installation. */
const totalSubject = 'total'

/** Creates the names of the guard's rows. Settings exempt some requests; those have none. */
export function createGuardRowKeys(settings: GuardSettings, keys: Pick<Keys, 'guard'>): GuardRowKeys {
  const { mode, trusted, totalPerDay } = settings
  const trustedRanges = trusted.addresses.map(parseRange)

  function isExempt({ environment, phone, clientIp, provider }: GuardedRequest): boolean {
    return (
      mode === 'off' ||
      // Inbox messages cost nothing. Mode `enforce` judges them too, so that operators can test rules without
      // a provider.
      (mode === 'monitor' && provider === inboxProvider) ||
      environment === 'test' ||
      isVirtualPhone(phone) ||
      trusted.prefixes.some((prefix) => phone.startsWith(prefix)) ||
      (clientIp !== null && isInRange(clientIp, trustedRanges))
    )
  }

  const hash = (developerId: string, kind: string, value: string) =>
    indexHash(keys.guard, `${developerId} ${kind} ${value}`, guardHashForm)

  function hashNetwork({ developerId, clientIp }: GuardedRequest): string | undefined {
    const network = clientIp === null ? undefined : wideNetworkOf(clientIp)
    return network === undefined ? undefined : hash(developerId, 'network', network)
  }

  /** @param withDayBefore whether the counts of the day before are read too */
  function toCounted(
    { developerId, phone, country }: GuardedRequest,
    networkHash: string | undefined,
    day: number,
    withDayBefore: boolean,
  ): CountedKeys {
    const toSubject = (subjectHash: string): CountedSubject => ({
      hash: subjectHash,
      today: toCountsKey(day, subjectHash),
      before: withDayBefore ? toCountsKey(day - 1, subjectHash) : undefined,
    })
    return {
      country: `${developerId} ${country ?? noCountry}`,
      prefix: toSubject(hash(developerId, 'prefix', phone.slice(0, -4))),
      network: networkHash === undefined ? undefined : toSubject(networkHash),
    }
  }

  return {
    keysToJudge(message, { isKnownPhone, contexts }, now) {
      if (isExempt(message)) return undefined
      // A list that forbids the message decides alone.
      if (mode === 'enforce' && violatedListRules(settings, message).length > 0)
        return { ...noKeys, judgedAt: now }
      const day = utcDay(now)
      const total = totalPerDay > 0 ? toCountsKey(day, totalSubject) : undefined
      if (isKnownPhone) return { ...noKeys, total, judgedAt: now }
      const counted = toCounted(message, hashNetwork(message), day, true)
      return { counted, contexts: withNetwork(contexts, counted.network?.hash), total, judgedAt: now }
    },

    keysToConvert(request, { isKnownPhone, contexts }) {
      if (isExempt(request)) return undefined
      const network = hashNetwork(request)
      const counted = isKnownPhone ? undefined : toCounted(request, network, utcDay(request.createdAt), false)
      return { ...noKeys, counted, contexts: withNetwork(contexts, network) }
    },

    keysToRevert(request, { isKnownPhone }) {
      if (isExempt(request) || isKnownPhone) return undefined
      return {
        ...noKeys,
        counted: toCounted(request, hashNetwork(request), utcDay(request.createdAt), false),
      }
    },
  }
}

const withNetwork = (contexts: readonly string[], network: string | undefined) =>
  network === undefined ? contexts : [...contexts, network]
