import { afterSuccess } from '../limits/check-budget.ts'
import { countChange } from '../log/changes.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Developer } from '../model/developer.ts'
import { notFound } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { invalidPhone, type Phone } from '../model/phone.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import { tryParseLastDigits, tryParseTypedPhone } from '../model/typed-phone.ts'
import type { Change } from '../store/operation.ts'
import type { Store } from '../store/store.ts'
import type { Identity } from '../model/identity.ts'
import {
  rememberContexts,
  withUsage,
  type TrustLevel,
  type PhoneIdentity,
  type PhoneRecord,
} from '../model/phone-record.ts'
import type { OtpRequest } from '../model/request.ts'
import { findPhone, type TypedPhone } from './phones.ts'
import { environments, type Environment } from '../../shared/otp-values.ts'
import { utcDay } from '../../shared/durations.ts'

/**
 * Counts a verification in the record of its phone: creates the identity at the first one, makes the contexts of the
 * send known, and ends the consecutive failures at its trust level.
 *
 * @param network key of the guard's counts, where the phone is evidence from now on
 * @returns the record, and the changes of the counts of active identities: each counts on the day of its last verification
 */
export function afterVerification(
  record: PhoneRecord,
  newId: NewId,
  request: Pick<OtpRequest, 'appId' | 'phone' | 'country' | 'contexts'>,
  trust: TrustLevel,
  now: number,
  network?: string,
): { record: PhoneRecord; activeChanges: Change[] } {
  const { identity } = record
  const verified: PhoneRecord = {
    ...withUsage(record, trust, { checks: afterSuccess(record.usages[trust].checks) }),
    phone: request.phone,
    country: request.country,
    contexts: rememberContexts(record, network ? [...request.contexts, network] : request.contexts, now),
    identity: identity
      ? countVerification(identity, request.appId, now)
      : {
          id: newId('idn'),
          verificationCount: 1,
          firstVerifiedAt: now,
          lastVerifiedAt: now,
          applications: [request.appId],
        },
  }
  const lastDay = identity ? utcDay(identity.lastVerifiedAt) : undefined
  const today = utcDay(now)
  if (lastDay === today) return { record: verified, activeChanges: [] }
  const activeChanges = [countChange(record, { active: 1 }, today)]
  if (lastDay !== undefined) activeChanges.push(countChange(record, { active: -1 }, lastDay))
  return { record: verified, activeChanges }
}

function countVerification(identity: PhoneIdentity, appId: string, now: number): PhoneIdentity {
  const { applications, verificationCount } = identity
  return {
    ...identity,
    verificationCount: verificationCount + 1,
    lastVerifiedAt: now,
    applications: applications.includes(appId) ? applications : [...applications, appId],
  }
}

/** Users among which a page looks for last digits: numbers are sealed. */
const scannedMax = 1_000

export type IdentityService = ReturnType<typeof createIdentityService>

/** Reads identities for their developer. */
export function createIdentityService(needs: {
  store: Store<'applications' | 'phones'>
  keys: Pick<Keys, 'context' | 'phone' | 'pseudonym'>
}) {
  const { read } = needs.store

  /** Finds the identities of a phone, live first. */
  async function findEach(
    developerId: string,
    phone: string,
    environment: Environment | undefined,
  ): Promise<Identity[]> {
    const wanted = environment === undefined ? environments : [environment]
    const records = wanted.map((one) => findPhone(read, needs.keys, { developerId, environment: one, phone }))
    const identities = (await Promise.all(records)).flatMap((found) =>
      found ? toIdentities(found.record) : [],
    )
    // The record may have a pseudonym; the caller knows the number.
    return identities.map((identity) => ({
      ...identity,
      phone: isPlainPhone(identity.phone) ? identity.phone : phone,
    }))
  }

  return {
    /**
     * Lists identities, newest first.
     *
     * @param environment undefined: of both
     * @throws INVALID_ARGUMENT (CURSOR_INVALID)
     */
    async list(
      developer: Developer,
      page: PageRequest,
      environment?: Environment | undefined,
    ): Promise<Page<Identity>> {
      const query = { environment, limit: page.limit + 1, before: readIdCursor(page, 'idn') }
      const records = await read.phones.listIdentities(developer.id, query)
      return toPage(records.flatMap(toIdentities), page.limit, ({ id }) => id)
    },

    /**
     * Lists the identities of a phone number that may be written as in its country, or of those that end with some digits,
     * among the next that the page looks at, newest first.
     *
     * @param environment undefined: of both
     * @throws INVALID_PHONE_NUMBER; INVALID_ARGUMENT for an unknown country, and CURSOR_INVALID
     */
    async listByPhone(
      developer: Pick<Developer, 'id'>,
      { phone: input, country }: TypedPhone,
      page: PageRequest,
      environment?: Environment | undefined,
    ): Promise<Page<Identity>> {
      const { limit } = page
      const before = readIdCursor(page, 'idn')
      const phone = tryParseTypedPhone(input, country)?.phone
      if (phone !== undefined) {
        const found = await findEach(developer.id, phone, environment)
        const items = found.filter(({ id }) => before === undefined || id < before)
        return toPage(
          items.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit + 1),
          limit,
          ({ id }) => id,
        )
      }
      const digits = country === undefined ? tryParseLastDigits(input) : undefined
      if (digits === undefined) throw invalidPhone('query')
      const query = { environment, limit: scannedMax, before }
      const scanned = (await read.phones.listIdentities(developer.id, query)).flatMap(toIdentities)
      const matching = scanned.filter(({ phone: one }) => isPlainPhone(one) && one.endsWith(digits))
      const items = matching.slice(0, limit)
      const end = matching.length > limit ? items.at(-1) : scanned[scannedMax - 1]
      return { items, limit, nextCursor: end?.id ?? null }
    },

    /**
     * Reads a phone number that may be written as in a country: the one that is named, or else the application's.
     *
     * @returns undefined if it cannot be a phone number
     * @throws INVALID_ARGUMENT for an unknown country
     */
    async readPhone(
      text: string,
      country: string | undefined,
      application?: Pick<CallingApplication, 'id' | 'developerId'>,
    ): Promise<Phone | undefined> {
      const phone = tryParseTypedPhone(text, country)
      if (phone || !application || country !== undefined) return phone
      const found = await read.applications.find(application.developerId, application.id)
      return tryParseTypedPhone(text, found?.defaultCountry ?? undefined)
    },

    /**
     * Finds the identity of a phone, under any of its spellings.
     *
     * @param phone E.164
     * @param environment undefined: live, or else test
     * @throws NOT_FOUND
     */
    async getByPhone(
      developerId: string,
      phone: string,
      environment?: Environment | undefined,
    ): Promise<Identity> {
      const [identity] = await findEach(developerId, phone, environment)
      if (identity) return identity
      throw notFound('user')
    },
  }
}

const toIdentities = ({ identity, developerId, environment, phone, country }: PhoneRecord): Identity[] =>
  identity === null
    ? []
    : [
        {
          ...identity,
          developerId,
          environment,
          phone,
          country,
          applications: identity.applications.toSorted(),
        },
      ]
