import { recordAudit, selfActor } from '../accounts/audit.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Actor } from '../model/audit.ts'
import type { Clock } from '../model/clock.ts'
import type { Developer } from '../model/developer.ts'
import { invalidField, notFound, ServiceError } from '../model/errors.ts'
import { isId, type NewId } from '../model/ids.ts'
import { listRulesMax, type ListRule, type RuleTarget } from '../model/list-rule.ts'
import { canonicalRange } from '../model/network.ts'
import { readIdCursor, toPage, type Page, type PageRequest } from '../model/pagination.ts'
import { isFirstDigits, isKnownCountry, noCountry, tryParsePhone } from '../model/phone.ts'
import { compactPhone, normalizeCountry } from '../../shared/spellings.ts'
import { tryParseTypedPhone } from '../model/typed-phone.ts'
import type { Store, Stores } from '../store/store.ts'
import { dayMs } from '../../shared/durations.ts'
import { findPhoneRule, subjectOf } from './listing.ts'

const lifetimeMaxMs = 3650 * dayMs

type NewListRule = Pick<ListRule, 'effect' | 'value'> & {
  /** If omitted, the value tells. */
  target?: RuleTarget | undefined
  /** Country of a phone that is written without its country code. */
  country?: string | undefined
  appId?: string | null | undefined
  /** Milliseconds since the epoch. */
  expiresAt?: number | null | undefined
}

export type ListRuleService = ReturnType<typeof createListRuleService>

/** Creates the service that manages the rules with which developers allow and deny destinations and networks. */
export function createListRuleService(needs: {
  store: Store<'applications' | 'audit' | 'developers' | 'listRules'>
  clock: Clock
  newId: NewId
}) {
  const { store, clock, newId } = needs

  type Action = 'guard_rule.created' | 'guard_rule.deleted'
  const addAuditEntry = (tx: Pick<Stores, 'audit'>, actor: Actor, action: Action, rule: ListRule) => {
    const details = { action, targetId: rule.id, detail: describeRule(rule) }
    return recordAudit(tx, newId, selfActor(actor), details, clock.now())
  }

  return {
    /** Lists the rules that have not expired, newest first. @throws INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(developer: Developer, page: PageRequest): Promise<Page<ListRule>> {
      const before = readIdCursor(page, 'rul')
      const stored = unexpired(await store.read.listRules.list(developer.id), clock.now())
      // Stored in the order of the calls: after a clock was set back that is not the order of the ids.
      const rules = stored.toSorted((a, b) => (a.id < b.id ? 1 : -1))
      const rest = before === undefined ? rules : rules.filter(({ id }) => id < before)
      return toPage(rest.slice(0, page.limit + 1), page.limit, ({ id }) => id)
    },

    /** Finds the rule that names a phone and decides for an application. */
    async findForPhone(
      application: Pick<CallingApplication, 'id' | 'developerId'>,
      phone: string,
    ): Promise<ListRule | undefined> {
      const rules = await store.read.listRules.list(application.developerId)
      return findPhoneRule(rules, { appId: application.id, phone }, clock.now())
    },

    /**
     * Creates a rule, and replaces one that concerns the same and the same application. Atomic: the developer is locked while
     * the rules are counted, so that the limit holds.
     *
     * @throws INVALID_ARGUMENT the value is none of its target or country, the target has no country, or the expiry is in the
     *   past; NOT_FOUND the application does not exist or is another developer's; CONFLICT (GUARD_RULE_LIMIT_REACHED)
     */
    create(developer: Actor, input: NewListRule): Promise<ListRule> {
      const { effect, appId = null, expiresAt = null } = input
      if (input.country !== undefined && (input.target ?? 'phone') !== 'phone') throw countryOfNoPhone()
      const national = input.country === undefined ? undefined : readNational(input.value, input.country)
      const target = national ? 'phone' : (input.target ?? readTarget(input.value))
      const value = national ?? canonicalValue(target, input.value)
      return store.write(async (tx) => {
        const now = clock.now()
        if (expiresAt !== null && (expiresAt <= now || expiresAt > now + lifetimeMaxMs))
          throw invalidField('body', 'expiresAt', expectedExpiry)
        await tx.developers.lock(developer.id)
        const isOwn =
          appId === null || (isId('app', appId) && (await tx.applications.find(developer.id, appId)))
        if (!isOwn) throw notFound('application')
        const rule: ListRule = { id: newId('rul'), effect, target, value, appId, createdAt: now, expiresAt }
        const others = unexpired(await tx.listRules.list(developer.id), now).filter(
          (one) => subjectOf(one) !== subjectOf(rule) || one.appId !== appId,
        )
        if (others.length >= listRulesMax) throw limitReached()
        await tx.listRules.save(developer.id, [rule, ...others])
        await addAuditEntry(tx, developer, 'guard_rule.created', rule)
        return rule
      })
    },

    /** Deletes a rule. @throws NOT_FOUND */
    async delete(developer: Actor, id: string): Promise<void> {
      await store.write(async (tx) => {
        const rules = unexpired(await tx.listRules.list(developer.id), clock.now())
        const rule = rules.find((one) => one.id === id)
        const isDeleted = rule && (await deleteRules(tx, developer.id, (one) => one.id === id))
        if (!isDeleted) throw notFound('guardRule')
        await addAuditEntry(tx, developer, 'guard_rule.deleted', rule)
      })
    },
  }
}

const unexpired = (rules: readonly ListRule[], now: number) =>
  rules.filter(({ expiresAt }) => expiresAt === null || expiresAt > now)

/** Deletes rules for which a test holds. @returns whether there were any */
export async function deleteRules(
  tx: Pick<Stores, 'developers' | 'listRules'>,
  developerId: string,
  isDeleted: (rule: ListRule) => boolean,
): Promise<boolean> {
  await tx.developers.lock(developerId)
  const rules = await tx.listRules.list(developerId)
  const left = rules.filter((rule) => !isDeleted(rule))
  if (left.length === rules.length) return false
  await tx.listRules.save(developerId, left)
  return true
}

/** Deletes expired rules of about `batchSize` developers. @returns false when none was left */
export async function deleteExpiredRules(
  tx: Pick<Stores, 'developers' | 'listRules'>,
  now: number,
  batchSize: number,
): Promise<boolean> {
  const developerIds = (await tx.listRules.listExpired(now, batchSize)).toSorted()
  for (const id of developerIds)
    await deleteRules(tx, id, ({ expiresAt }) => expiresAt !== null && expiresAt <= now)
  return developerIds.length > 0
}

/** Digits of a prefix that an audit entry shows: it must not name a phone. */
const shownDigits = 7

/** Describes a rule for the audit trail, which names no phones and no addresses. */
function describeRule({ effect, target, value, appId, expiresAt }: ListRule): string {
  const digits = `${value.slice(0, shownDigits + 1)}${value.length > shownDigits + 1 ? '…' : ''}`
  const shown = target === 'country' ? ` ${value}` : target === 'prefix' ? ` ${digits}` : ''
  const application = appId === null ? '' : ` for ${appId}`
  const end = expiresAt === null ? '' : ` until ${new Date(expiresAt).toISOString()}`
  return `${effect} ${target}${shown}${application}${end}`
}

/** Tells what a value names: `+1415*` is a prefix, as is every text that begins like phones and names none of them. */
function readTarget(text: string): RuleTarget {
  if (/^[A-Za-z]{2}$/.test(text) || text === noCountry) return 'country'
  if (canonicalRange(text) !== undefined) return 'network'
  const phone = tryParsePhone(text)?.phone
  return phone !== undefined && !isFirstDigits(phone) ? 'phone' : 'prefix'
}

/** Reads a phone as it is written in its country. @throws INVALID_ARGUMENT */
function readNational(text: string, country: string): string {
  const phone = tryParseTypedPhone(text, country)?.phone
  if (phone !== undefined) return phone
  throw invalidField('body', 'value', `Expected a phone number of ${country.toUpperCase()}.`)
}

/** Brings a value to the one form in which it is stored and compared. @throws INVALID_ARGUMENT */
function canonicalValue(target: RuleTarget, text: string): string {
  const compact = compactPhone(text).replace(/[*…]$/, '')
  const country = normalizeCountry(text)
  const readers: Record<RuleTarget, () => string | undefined> = {
    phone: () => tryParsePhone(text)?.phone,
    prefix: () => (/^\+[1-9]\d{0,14}$/.test(compact) ? compact : undefined),
    country: () => (country === noCountry || isKnownCountry(country) ? country : undefined),
    network: () => canonicalRange(text),
  }
  const value = readers[target]()
  if (value === undefined) throw invalidField('body', 'value', expectedValues[target])
  return value
}

const expectedValues: Record<RuleTarget, string> = {
  phone: 'Expected a number in E.164 format, such as +14155550100.',
  prefix:
    'Expected a phone with its country code or its `country`, the first digits of phones such as +882, a country, an IP address or a CIDR.',
  country: `Expected a two-letter ISO 3166 code such as NL, or ${noCountry} for numbers of no country.`,
  network: 'Expected an IP address or a CIDR, such as 203.0.113.0/24.',
}

const countryOfNoPhone = () =>
  invalidField('body', 'country', 'Only a phone has a country. Omit it or target.')

const expectedExpiry = 'Expected a time in the future, at most ten years away, or null.'

const limitReached = () =>
  new ServiceError('CONFLICT', `You already have ${listRulesMax} guard rules, the maximum. Delete one.`, {
    reason: 'GUARD_RULE_LIMIT_REACHED',
    metadata: { limit: listRulesMax },
  })
