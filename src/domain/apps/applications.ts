import type { ApplicationCredentials } from './authentication.ts'
import { selfActor, recordAudit, type Actor, type AuditDetails } from '../accounts/audit.ts'
import {
  deriveClientId,
  issueCredentials,
  maskCredential,
  replaceCredential,
  type Environment,
  type FreshCredential,
  type IssuedSecrets,
  type RotationType,
  type StoredCredentials,
} from './credentials.ts'
import type { Developer } from '../accounts/developers.ts'
import { notFound } from '../model/errors.ts'
import { runIdempotently, type IdempotentResult, type IdempotencyScope } from '../limits/idempotency.ts'
import { isId, type NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { MessageSettings } from '../model/message-settings.ts'
import { resolvePlan, type Plans } from '../model/plans.ts'
import type { Clock, Random } from '../model/clock.ts'
import { planLimitReached } from './projects.ts'
import type { Store, Stores } from '../store/store.ts'

/** As it is stored. */
export type Application = StoredCredentials &
  Omit<MessageSettings, 'name'> & {
    id: string
    developerId: string
    projectId: string
    name: string
    environment: Environment
    status: 'active' | 'disabled'
    /** 60 to 600. */
    otpTtlSeconds: number
    clientSecretRotatedAt: number | null
    apiKeyRotatedAt: number | null
    webhookSecretRotatedAt: number | null
    /** Grows whenever a credential that a call is authenticated with is replaced. */
    credentialsVersion: number
    createdAt: number
    updatedAt: number
  }

export type ApplicationChanges = {
  name?: string | undefined
  status?: Application['status'] | undefined
  otpTtlSeconds?: number | undefined
  /** Null takes it back, as with the two below. */
  defaultLocale?: string | null | undefined
  webOtpDomain?: string | null | undefined
  androidAppHash?: string | null | undefined
}

/** Every finder names the developer but the one that serves authentication. */
export type ApplicationStore = {
  find(developerId: string, id: string): Promise<Application | undefined>
  /** Newest first. @param query.before an id; only older ones are listed */
  list(query: ApplicationListQuery): Promise<ListedApplication[]>
  count(developerId: string): Promise<number>
  insert(application: Application): Promise<void>
  update(
    developerId: string,
    id: string,
    changes: ApplicationChanges,
    now: number,
  ): Promise<Application | undefined>
  rotate(developerId: string, id: string, replacement: FreshCredential, now: number): Promise<boolean>
  /** Removes it with its credentials, webhook endpoints and their deliveries, and nothing else. */
  delete(developerId: string, id: string): Promise<boolean>
  /** For the operator, who sees everybody's. */
  findOwner(id: string): Promise<{ developerId: string; name: string } | undefined>
  /** Several may share the eight characters. */
  findByApiKeyPreview(preview: string): Promise<ApplicationCredentials[]>
  /**
   * Whether what a call was authenticated with still holds. The application stays as it is until the transaction ends.
   *
   * @returns `stale` where a credential was replaced or the application is gone, `not_allowed` where its developer is
   *   disabled
   */
  lockAndCheckCredentials(
    id: string,
    credentialsVersion: number,
  ): Promise<'ok' | 'disabled' | 'not_allowed' | 'stale'>
}

export type ApplicationListQuery = {
  developerId: string
  projectId?: string | undefined
  limit: number
  before?: string | undefined
}

/** What a developer is shown. Times are milliseconds; a time of rotation is null before the first. */
export type ApplicationView = Pick<
  Application,
  | 'id'
  | 'name'
  | 'projectId'
  | 'environment'
  | 'status'
  | 'otpTtlSeconds'
  | 'defaultLocale'
  | 'webOtpDomain'
  | 'androidAppHash'
  | 'createdAt'
  | 'updatedAt'
  | 'clientSecretRotatedAt'
  | 'apiKeyRotatedAt'
  | 'webhookSecretRotatedAt'
> & { clientId: string; clientSecretPreview: string; apiKeyPreview: string }

/** What the view is made of: neither salts nor hashes. */
export type ListedApplication = Omit<ApplicationView, 'clientId'>

/** The one time that the secrets are told. */
export type CreatedApplication = { application: ApplicationView; secrets: IssuedSecrets }

export const otpTtlSecondsMin = 60
export const otpTtlSecondsMax = 600
const otpTtlSecondsDefault = 300

export type ApplicationService = ReturnType<typeof createApplicationService>

export function createApplicationService(needs: {
  store: Store
  clock: Clock
  newId: NewId
  random: Random
  keys: Pick<Keys, 'clientId'>
  plans: Plans
}) {
  const { store, clock, newId, random, keys, plans } = needs

  const toView = (row: ListedApplication): ApplicationView => ({
    id: row.id,
    name: row.name,
    projectId: row.projectId,
    environment: row.environment,
    status: row.status,
    clientId: deriveClientId(keys, row.environment, row.id),
    clientSecretPreview: maskCredential('secret', row.environment, row.clientSecretPreview),
    apiKeyPreview: maskCredential('api', row.environment, row.apiKeyPreview),
    otpTtlSeconds: row.otpTtlSeconds,
    defaultLocale: row.defaultLocale,
    webOtpDomain: row.webOtpDomain,
    androidAppHash: row.androidAppHash,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    clientSecretRotatedAt: row.clientSecretRotatedAt,
    apiKeyRotatedAt: row.apiKeyRotatedAt,
    webhookSecretRotatedAt: row.webhookSecretRotatedAt,
  })

  const addAuditEntry = (tx: Stores, actor: Actor, { id, name }: Application, details: AuditDetails) =>
    recordAudit(tx, newId, selfActor(actor), { targetId: id, targetName: name, ...details }, clock.now())

  const find = async (stores: Stores, developer: Developer, id: string): Promise<Application> => {
    const application = isId('app', id) ? await stores.applications.find(developer.id, id) : undefined
    if (!application) throw notFound()
    return application
  }

  return {
    /**
     * @param projectId one that is not the developer's gives an empty list
     * @throws INVALID_ARGUMENT (CURSOR_INVALID)
     */
    async list(
      developer: Developer,
      projectId: string | undefined,
      page: PageRequest,
    ): Promise<Page<ApplicationView>> {
      const before = readIdCursor(page, 'app')
      const matchesNothing = projectId !== undefined && !isId('prj', projectId)
      const query = { developerId: developer.id, projectId, limit: page.limit + 1, before }
      const rows = matchesNothing ? [] : await store.read.applications.list(query)
      return toPage(rows.map(toView), page.limit, (application) => application.id)
    },

    /** @throws NOT_FOUND absent or somebody else's */
    get: async (developer: Developer, id: string): Promise<ApplicationView> =>
      toView(await find(store.read, developer, id)),

    /**
     * Makes all four credentials. Atomic: developer and project are held while the applications are counted, so that
     * the plan's number is never passed and the project cannot go meanwhile. The answer is not kept for a repeat with
     * the same idempotency key, since it holds credentials.
     *
     * @throws NOT_FOUND the project is absent or somebody else's; PLAN_LIMIT_REACHED; IDEMPOTENCY_KEY_REUSED;
     *   CONFLICT (IDEMPOTENCY_RESULT_NOT_STORED)
     */
    create(
      developer: Actor,
      input: { name: string; projectId: string; environment: Environment },
      idempotency?: IdempotencyScope,
    ): Promise<IdempotentResult<CreatedApplication>> {
      const work = async (tx: Stores) => {
        if (!isId('prj', input.projectId)) return notFound()
        // Parents first, as a deletion of the developer takes its locks; the other way round the two could deadlock.
        await tx.developers.lock(developer.id)
        await tx.projects.lock(input.projectId)
        if (!(await tx.projects.find(developer.id, input.projectId))) return notFound()
        const limit = resolvePlan(plans, developer.plan).applications
        if ((await tx.applications.count(developer.id)) >= limit) {
          return planLimitReached('applications', limit, developer.plan)
        }
        const id = newId('app')
        const now = clock.now()
        const { secrets, stored } = issueCredentials(keys, input.environment, id, random)
        const application: Application = {
          ...input,
          ...stored,
          id,
          developerId: developer.id,
          status: 'active',
          otpTtlSeconds: otpTtlSecondsDefault,
          defaultLocale: null,
          webOtpDomain: null,
          androidAppHash: null,
          clientSecretRotatedAt: null,
          apiKeyRotatedAt: null,
          webhookSecretRotatedAt: null,
          credentialsVersion: 1,
          createdAt: now,
          updatedAt: now,
        }
        await tx.applications.insert(application)
        await addAuditEntry(tx, developer, application, {
          action: 'application.created',
          detail: input.environment,
        })
        return { application: toView(application), secrets }
      }
      return runIdempotently(store, clock, idempotency, work, { redact: true })
    },

    /**
     * While an application is disabled every call with its credentials is refused, at once.
     *
     * @throws NOT_FOUND
     */
    update: (developer: Actor, id: string, changes: ApplicationChanges): Promise<ApplicationView> =>
      store.write(async (tx) => {
        const changed = isId('app', id)
          ? await tx.applications.update(developer.id, id, normalizeChanges(changes), clock.now())
          : undefined
        if (!changed) throw notFound()
        const action = changes.status ? statusActions[changes.status] : 'application.updated'
        await addAuditEntry(tx, developer, changed, { action, detail: Object.keys(changes).join(',') })
        return toView(changed)
      }),

    /**
     * Deletes the application, its credentials, its webhook endpoints and what they were still to be told. Its OTP
     * requests, log entries and counts stay.
     *
     * @throws NOT_FOUND
     */
    delete: (developer: Actor, id: string): Promise<void> =>
      store.write(async (tx) => {
        const application = await find(tx, developer, id)
        if (!(await tx.applications.delete(developer.id, id))) throw notFound()
        await addAuditEntry(tx, developer, application, { action: 'application.deleted' })
      }),

    /**
     * Replaces one credential. No call whose processing starts after this resolves succeeds with the old value.
     *
     * @returns the new value, which for `secret` and `api` cannot be read again
     * @throws NOT_FOUND
     */
    rotate: (
      developer: Actor,
      id: string,
      type: RotationType,
    ): Promise<{ type: RotationType; value: string; rotatedAt: number }> =>
      store.write(async (tx) => {
        const application = await find(tx, developer, id)
        const { value, stored } = replaceCredential(type, application.environment, random)
        const rotatedAt = clock.now()
        if (!(await tx.applications.rotate(developer.id, id, stored, rotatedAt))) throw notFound()
        await addAuditEntry(tx, developer, application, { action: 'credential.rotated', detail: type })
        return { type, value, rotatedAt }
      }),

    /** @throws NOT_FOUND */
    webhookSecret: async (developer: Developer, id: string): Promise<string> =>
      (await find(store.read, developer, id)).webhookSecret,
  }
}

const statusActions = { active: 'application.enabled', disabled: 'application.disabled' } as const

/** Host names are compared without regard to case, and browsers show them in small letters. */
const normalizeChanges = ({ webOtpDomain, ...changes }: ApplicationChanges): ApplicationChanges =>
  webOtpDomain === undefined ? changes : { ...changes, webOtpDomain: webOtpDomain?.toLowerCase() ?? null }
