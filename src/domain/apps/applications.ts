import { selfActor, recordAudit, type AuditDetails } from '../accounts/audit.ts'
import type { Actor } from '../model/audit.ts'
import {
  deriveClientId,
  issueCredentials,
  maskCredential,
  replaceCredential,
  type IssuedSecrets,
  type RotationType,
} from './credentials.ts'
import {
  type Environment,
  type ApplicationSettings,
  type Application,
  type NewApplication,
  type ApplicationChanges,
  type ApplicationView,
  listedFields,
  type ListedApplication,
} from '../model/application.ts'
import type { Developer } from '../model/developer.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { runIdempotently, type IdempotentResult } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { isId, type NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { resolvePlan, type Plans } from '../model/plans.ts'
import type { Clock } from '../model/clock.ts'
import type { Random } from '../model/random.ts'
import { normalizeCountry } from '../../shared/spellings.ts'
import { deleteDeliveries } from '../store/delete-deliveries.ts'
import { requireOwnApplication } from './own-application.ts'
import { planLimitReached } from './projects.ts'
import type { Store, Stores } from '../store/store.ts'
import { applicationFields } from '../../shared/application-fields.ts'
import { mapProperties, pick } from '../../shared/fields.ts'

/** A new application with its secrets, which are shown only once. */
export type CreatedApplication = { application: ApplicationView; secrets: IssuedSecrets }

const defaultSettings: ApplicationSettings = mapProperties(applicationFields, (field) => field.default)

export type ApplicationService = ReturnType<typeof createApplicationService>

/** Creates the service that manages applications. */
export function createApplicationService(needs: {
  store: Store<
    | 'applications'
    | 'audit'
    | 'developers'
    | 'idempotency'
    | 'listRules'
    | 'projects'
    | 'rateLimits'
    | 'webhookDeliveries'
    | 'webhookEndpoints'
  >
  clock: Clock
  newId: NewId
  random: Random
  keys: Pick<Keys, 'clientId'>
  plans: Plans
}) {
  const { store, clock, newId, random, keys, plans } = needs

  const toView = (row: ListedApplication): ApplicationView => ({
    ...pick(row, listedFields),
    clientId: deriveClientId(keys, row.environment, row.id),
    clientSecretPreview: maskCredential('secret', row.environment, row.clientSecretPreview),
    apiKeyPreview: maskCredential('api', row.environment, row.apiKeyPreview),
  })

  const addAuditEntry = (
    tx: Pick<Stores, 'audit'>,
    actor: Actor,
    { id, name }: Application,
    details: AuditDetails,
  ) => recordAudit(tx, newId, selfActor(actor), { targetId: id, targetName: name, ...details }, clock.now())

  return {
    /**
     * Lists applications, newest first.
     *
     * @throws INVALID_ARGUMENT (CURSOR_INVALID); NOT_FOUND the project does not exist or is another developer's
     */
    async list(
      developer: Developer,
      projectId: string | undefined,
      page: PageRequest,
    ): Promise<Page<ApplicationView>> {
      const before = readIdCursor(page, 'app')
      if (projectId !== undefined) {
        const project = isId('prj', projectId) && (await store.read.projects.find(developer.id, projectId))
        if (!project) throw notFound('project')
      }
      const query = { developerId: developer.id, projectId, limit: page.limit + 1, before }
      const rows = await store.read.applications.list(query)
      return toPage(rows.map(toView), page.limit, (application) => application.id)
    },

    /**
     * Checks the application that a list is filtered by, which may have been deleted. An empty list would hide a wrong id.
     *
     * @throws NOT_FOUND it never existed or is another developer's
     */
    async requireFilter(developer: Developer, id: string | undefined): Promise<void> {
      if (id === undefined) return
      if (!isId('app', id) || !(await store.read.applications.hasExisted(developer.id, id)))
        throw notFound('application')
    },

    /** @throws NOT_FOUND it does not exist or is another developer's */
    get: async (developer: Pick<Developer, 'id'>, id: string): Promise<ApplicationView> =>
      toView(await requireOwnApplication(store.read, developer, id)),

    /**
     * Creates an application with all four credentials. Atomic: developer and project are locked while the
     * applications are counted, so that the plan's limit holds and the project is not deleted concurrently. The
     * result is not stored for the idempotency key, because it contains credentials.
     *
     * @throws NOT_FOUND the project does not exist or is another developer's; PLAN_LIMIT_REACHED;
     *   IDEMPOTENCY_KEY_REUSED; CONFLICT (IDEMPOTENCY_RESULT_NOT_STORED)
     */
    create(
      developer: Actor,
      input: { name: string; projectId: string; environment: Environment } & Partial<ApplicationSettings>,
      idempotency?: IdempotencyScope,
    ): Promise<IdempotentResult<CreatedApplication>> {
      const work = async (
        tx: Pick<Stores, 'applications' | 'audit' | 'developers' | 'projects'>,
      ): Promise<CreatedApplication> => {
        if (!isId('prj', input.projectId)) throw notFound('project')
        // Lock order: parents first, as in the deletion of a developer, to avoid deadlock.
        await tx.developers.lock(developer.id)
        await tx.projects.lock(input.projectId)
        if (!(await tx.projects.find(developer.id, input.projectId))) throw notFound('project')
        const limit = resolvePlan(plans, developer.plan).applications
        if ((await tx.applications.count(developer.id)) >= limit) {
          throw planLimitReached('applications', limit, developer.plan)
        }
        const id = newId('app')
        const now = clock.now()
        const { secrets, stored } = issueCredentials(keys, input.environment, id, random)
        const application: NewApplication = {
          ...defaultSettings,
          ...normalizeSettings(input),
          ...stored,
          id,
          developerId: developer.id,
          status: 'active',
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

    /** Updates an application; disabling it rejects its requests immediately. @throws NOT_FOUND */
    update: (developer: Actor, id: string, changes: ApplicationChanges): Promise<ApplicationView> =>
      store.write(async (tx) => {
        const changed = isId('app', id)
          ? await tx.applications.update(developer.id, id, normalizeSettings(changes), clock.now())
          : undefined
        if (!changed) throw notFound('application')
        const action = changes.status ? statusActions[changes.status] : 'application.updated'
        await addAuditEntry(tx, developer, changed, { action, detail: Object.keys(changes).join(',') })
        return toView(changed)
      }),

    /**
     * Deletes the application, its credentials, its guard rules, its webhook endpoints and their pending deliveries. Its OTP
     * requests, log entries and counters stay. A call that fails midway has deleted some of the deliveries, and can be repeated.
     *
     * @throws NOT_FOUND
     */
    async delete(developer: Actor, id: string): Promise<void> {
      await requireOwnApplication(store.read, developer, id)
      for (const endpoint of await store.read.webhookEndpoints.subscribers(id))
        await deleteDeliveries(store, endpoint.id)
      await store.write(async (tx) => {
        await tx.developers.lock(developer.id)
        const application = await requireOwnApplication(tx, developer, id)
        const rules = await tx.listRules.list(developer.id)
        const left = rules.filter(({ appId }) => appId !== id)
        if (left.length < rules.length) await tx.listRules.save(developer.id, left)
        if (!(await tx.applications.delete(developer.id, id))) throw notFound('application')
        await tx.rateLimits.forget(id)
        await addAuditEntry(tx, developer, application, { action: 'application.deleted' })
      })
    },

    /**
     * Replaces one credential. The old value is rejected for all requests that start after this resolves.
     *
     * @returns the new value, which is shown only once for `secret` and `api`
     * @throws NOT_FOUND
     */
    rotate: (
      developer: Actor,
      id: string,
      type: RotationType,
    ): Promise<{ type: RotationType; value: string; rotatedAt: number }> =>
      store.write(async (tx) => {
        const application = await requireOwnApplication(tx, developer, id)
        const { value, stored } = replaceCredential(type, application.environment, random)
        const rotatedAt = clock.now()
        if (!(await tx.applications.rotate(developer.id, id, stored, rotatedAt)))
          throw notFound('application')
        await addAuditEntry(tx, developer, application, { action: 'credential.rotated', detail: type })
        return { type, value, rotatedAt }
      }),

    /** @throws NOT_FOUND */
    async webhookSecret(developer: Developer, id: string): Promise<string> {
      const { webhookSecret } = await requireOwnApplication(store.read, developer, id)
      if (webhookSecret !== null) return webhookSecret
      throw new ServiceError('CONFLICT', 'The stored webhook secret cannot be decrypted. Rotate it.', {
        reason: 'WEBHOOK_SECRET_UNREADABLE',
      })
    },
  }
}

const statusActions = { active: 'application.enabled', disabled: 'application.disabled' } as const

/**
 * Writes settings as they are stored: countries in upper case, in order and once; the domain in lower case, as browsers show
 * it.
 */
const normalizeSettings = <T extends Omit<ApplicationChanges, 'status'>>(settings: T): T => {
  const { webOtpDomain, defaultCountry, countries } = settings
  return {
    ...settings,
    ...(webOtpDomain && { webOtpDomain: webOtpDomain.toLowerCase() }),
    ...(defaultCountry && { defaultCountry: normalizeCountry(defaultCountry) }),
    ...(countries && { countries: [...new Set(countries.map(normalizeCountry))].toSorted() }),
  }
}
