import { recordAudit, selfActor } from '../accounts/audit.ts'
import { lockLogin, notAllowed } from '../accounts/developers.ts'
import { runIdempotently, type IdempotentResult } from '../limits/idempotency.ts'
import { hasApiTokenFormat, makeApiToken, type ApiToken } from '../model/api-token.ts'
import type { Actor } from '../model/audit.ts'
import type { Clock } from '../model/clock.ts'
import type { Developer } from '../model/developer.ts'
import { invalidField, isUnavailable, notFound, ServiceError } from '../model/errors.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { isId, type NewId } from '../model/ids.ts'
import { readIdCursor, toPage, type Page, type PageRequest } from '../model/pagination.ts'
import type { Random } from '../model/random.ts'
import type { Store } from '../store/store.ts'
import type { ApiTokenScope } from '../../shared/api-token-scopes.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'
import { compareWithDummy, hashCredential, matchesCredential, previewCredential } from './credentials.ts'

/** Bounds what one developer can store; large teams have an account for each service. */
export const apiTokensMax = 100
const lifetimeDefaultMs = 90 * dayMs
const lifetimeMaxMs = 3650 * dayMs
/** A use is recorded at most this often, so that a busy token does not cost a write per request. */
const usedPrecisionMs = minuteMs

/** @param expiresAt milliseconds since the epoch; null: never; undefined: 90 days from now */
type NewApiToken = {
  name: string
  scopes: readonly ApiTokenScope[]
  expiresAt?: number | null | undefined
}

/** A new token; its value is not stored and so cannot be shown again. */
type CreatedApiToken = ApiToken & { value: string }

export type ApiTokenService = ReturnType<typeof createApiTokenService>

/** Creates the service that manages API tokens and authenticates with them. */
export function createApiTokenService(needs: {
  store: Store<'apiTokens' | 'audit' | 'developers' | 'idempotency'>
  clock: Clock
  newId: NewId
  random: Random
}) {
  const { store, clock, newId, random } = needs

  /** Records the use of a token. A database that cannot be written right now must not refuse reads. */
  const markUsed = async ({ id, lastUsedAt }: ApiToken) => {
    const now = clock.now()
    const usedUntil = now - usedPrecisionMs
    if (lastUsedAt !== null && lastUsedAt > usedUntil) return
    try {
      await store.write((tx) => tx.apiTokens.markUsed(id, now, usedUntil))
    } catch (error) {
      if (!isUnavailable(error)) throw error
    }
  }

  return {
    /** @throws INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(developer: Developer, page: PageRequest): Promise<Page<ApiToken>> {
      const before = readIdCursor(page, 'tok')
      const rows = await store.read.apiTokens.list(developer.id, page.limit + 1, before)
      return toPage(rows, page.limit, (token) => token.id)
    },

    /**
     * Creates a token. Atomic: the developer is locked while the tokens are counted, so that the limit holds.
     *
     * @throws INVALID_ARGUMENT the expiry is in the past or over ten years away; CONFLICT (TOKEN_NAME_TAKEN,
     *   TOKEN_LIMIT_REACHED); IDEMPOTENCY_KEY_REUSED; as `lockLogin`
     */
    create(
      developer: Actor,
      { name, scopes, expiresAt }: NewApiToken,
      idempotency?: IdempotencyScope,
    ): Promise<IdempotentResult<CreatedApiToken>> {
      const work = async (tx: Pick<typeof store.read, 'apiTokens' | 'audit' | 'developers'>) => {
        const now = clock.now()
        const endsAt = expiresAt === undefined ? now + lifetimeDefaultMs : expiresAt
        if (endsAt !== null && (endsAt <= now || endsAt > now + lifetimeMaxMs)) throw invalidExpiry()
        await lockLogin(tx, developer)
        // An expired token keeps neither its name nor, at the limit, its place.
        await tx.apiTokens.deleteExpired(developer.id, now, name)
        const isFull = async () => (await tx.apiTokens.count(developer.id)) >= apiTokensMax
        if (await isFull()) await tx.apiTokens.deleteExpired(developer.id, now)
        if (await isFull()) throw limitReached()
        const value = makeApiToken(random)
        const token: ApiToken = {
          id: newId('tok'),
          developerId: developer.id,
          name,
          scopes,
          preview: previewCredential(value),
          createdAt: now,
          expiresAt: endsAt,
          lastUsedAt: null,
        }
        if (!(await tx.apiTokens.insert({ ...token, ...hashCredential(value, random) }))) throw nameTaken()
        const target = { targetId: token.id, targetName: name, detail: scopes.join(',') }
        await recordAudit(tx, newId, selfActor(developer), { action: 'token.created', ...target }, now)
        return { ...token, value }
      }
      return runIdempotently(store, clock, idempotency, work, { redact: true })
    },

    /** Revokes a token; requests and streams with it end at once. @throws NOT_FOUND */
    async revoke(developer: Actor, id: string): Promise<void> {
      if (!isId('tok', id)) throw notFound('apiToken')
      await store.write(async (tx) => {
        const targetName = await tx.apiTokens.delete(developer.id, id)
        if (targetName === undefined) throw notFound('apiToken')
        const details = { action: 'token.revoked', targetId: id, targetName } as const
        await recordAudit(tx, newId, selfActor(developer), details, clock.now())
      })
    },

    /**
     * Finds the token of a value, and its developer. Reads the database each time, so that a revocation takes effect on
     * the next request.
     *
     * @throws UNAUTHENTICATED (TOKEN_INVALID, TOKEN_EXPIRED); FORBIDDEN (ACCOUNT_NOT_ALLOWED) the developer is disabled
     */
    async authenticate(value: string): Promise<{ token: ApiToken; developer: Developer }> {
      if (!hasApiTokenFormat(value)) throw unknownToken()
      const candidates = await store.read.apiTokens.findByPreview(previewCredential(value))
      // An unknown token costs a hash too, so that timing does not reveal whether its preview exists.
      if (candidates.length === 0) compareWithDummy(value)
      const match = candidates.find(({ token }) => matchesCredential(value, token))
      if (!match) throw unknownToken()
      const { token, developer } = match
      if (token.expiresAt !== null && token.expiresAt <= clock.now()) throw expiredToken()
      if (developer.status !== 'active') throw notAllowed()
      await markUsed(token)
      return { token, developer }
    },
  }
}

const unknownToken = () =>
  new ServiceError('UNAUTHENTICATED', 'The API token is unknown or was revoked. Create a new one.', {
    reason: 'TOKEN_INVALID',
  })

const expiredToken = () =>
  new ServiceError('UNAUTHENTICATED', 'The API token has expired. Create a new one.', {
    reason: 'TOKEN_EXPIRED',
  })

const invalidExpiry = () =>
  invalidField('body', 'expiresAt', 'Expected a time in the future, at most ten years away, or null.')

const nameTaken = () =>
  new ServiceError(
    'CONFLICT',
    'You already have an API token with this name. Revoke it, or choose another name.',
    { reason: 'TOKEN_NAME_TAKEN' },
  )

const limitReached = () =>
  new ServiceError('CONFLICT', `You already have ${apiTokensMax} API tokens, the maximum. Revoke one.`, {
    reason: 'TOKEN_LIMIT_REACHED',
    metadata: { limit: apiTokensMax },
  })
