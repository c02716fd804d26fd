import type { Listing, ListRule } from '../model/list-rule.ts'
import type { Sender } from '../model/guard.ts'
import { parseRange, rangeTest } from '../model/network.ts'
import { noCountry } from '../model/phone.ts'
import { canonicalPhone, phoneSpellings } from '../../shared/spellings.ts'
import type { OtpRequest } from '../model/request.ts'

/** Fields of a message that rules match. */
type ListedMessage = Pick<OtpRequest, 'appId' | 'phone' | 'country' | 'clientIp'>

/** Says what a rule concerns: the same for all spellings of a phone, which reach one subscriber. */
export const subjectOf = ({ target, value }: Pick<ListRule, 'target' | 'value'>) =>
  `${target} ${target === 'phone' ? canonicalPhone(value) : value}`
const ownFirst = (a: ListRule, b: ListRule) => Number(a.appId === null) - Number(b.appId === null)

/** Lists are replaced whole when a rule changes, so each list needs one index. */
const indexes = new WeakMap<readonly ListRule[], ReturnType<typeof createIndex>>()

function indexFor(rules: readonly ListRule[]) {
  const index = indexes.get(rules) ?? createIndex(rules.toSorted(ownFirst))
  indexes.set(rules, index)
  return index
}

/** Creates an index of rules. @param rules those of one application first */
const createIndex = (rules: readonly ListRule[]) => ({
  /** By what they concern. */
  destinations: Map.groupBy(rules, subjectOf),
  /** The narrowest first. */
  networks: rules
    .filter(({ target }) => target === 'network')
    .map((rule) => ({ rule, range: parseRange(rule.value) }))
    .toSorted((a, b) => b.range.prefixLength - a.range.prefixLength),
})

const appliesTo = (appId: string, now: number) => (rule: ListRule) =>
  (rule.appId === null || rule.appId === appId) && (rule.expiresAt === null || rule.expiresAt > now)

/** Finds the rule that names a phone and decides for an application: its own, then one for all applications. */
export const findPhoneRule = (
  rules: readonly ListRule[],
  { appId, phone }: Pick<ListedMessage, 'appId' | 'phone'>,
  now: number,
): ListRule | undefined =>
  indexFor(rules)
    .destinations.get(subjectOf({ target: 'phone', value: phone }))
    ?.find(appliesTo(appId, now))

/**
 * Finds the verdict of rules on a message. Of those for its destination the most specific decides: its phone, then the longest
 * prefix, both in any of its spellings, then its country; likewise of those for its network the narrowest. Of equal rules, the
 * application's own decides. If those for destination and network differ, deny takes precedence.
 */
export function findListing(rules: readonly ListRule[], message: ListedMessage, now: number): Listing {
  if (rules.length === 0) return { isDenied: false, allowedBy: null }
  const { destinations, networks } = indexFor(rules)
  const { appId, phone, country, clientIp } = message
  const applies = appliesTo(appId, now)
  const find = (target: ListRule['target'], value: string) =>
    destinations.get(subjectOf({ target, value }))?.find(applies)

  function findDestination(): ListRule | undefined {
    const exact = find('phone', phone)
    if (exact) return exact
    const spellings = phoneSpellings(phone)
    const longest = Math.max(...spellings.map((spelling) => spelling.length))
    for (let length = longest; length > 1; length--)
      for (const spelling of spellings) {
        const prefix = find('prefix', spelling.slice(0, length))
        if (prefix) return prefix
      }
    return find('country', country ?? noCountry)
  }

  const destination = findDestination()
  const isFrom = clientIp === null || networks.length === 0 ? () => false : rangeTest(clientIp)
  const network = networks.find(({ rule, range }) => applies(rule) && isFrom(range))?.rule
  if (destination?.effect === 'deny' || network?.effect === 'deny') return { isDenied: true, allowedBy: null }
  const allowedDestination = destination?.target === 'phone' ? 'phone' : destination && 'destination'
  return { isDenied: false, allowedBy: allowedDestination ?? (network ? 'network' : null) }
}

/** Treats a sender whose message a rule allows as a known one: it passes the allowances, and is not counted. */
export const withListing = (sender: Sender, { allowedBy }: Listing): Sender =>
  allowedBy === null ? sender : { ...sender, isKnownPhone: true }
