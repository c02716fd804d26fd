import { and, count, desc, eq, lt, sql } from 'drizzle-orm'
import type { Application, ApplicationListQuery, ApplicationStore } from '../domain/apps/applications.ts'
import type { FreshCredential } from '../domain/apps/credentials.ts'
import type { Developer } from '../domain/accounts/developers.ts'
import { atMost } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { prepareFiltered, type Given } from './engine/prepare-filtered.ts'
import type { Tables } from './engine/tables.ts'

/** What a message takes from its application, for a query that joins it; null where it joins none. */
export const messageSettings = ({
  name,
  defaultLocale,
  webOtpDomain,
  androidAppHash,
}: Tables['applications']) => ({
  name,
  defaultLocale,
  webOtpDomain,
  androidAppHash,
})

export function createApplicationStore(database: Database, on: Builders): ApplicationStore {
  const { applications, developers, rateAdmissions } = database.tables
  const owned = (developerId: string, id: string) =>
    and(eq(applications.id, id), eq(applications.developerId, developerId))

  // A third of the time that SQLite takes for the same as a join: this stands before every call of an application.
  const ofDeveloper = (column: typeof developers.plan | typeof developers.status) =>
    sql`(select ${column} from ${developers} where ${developers}.id = ${applications}.developer_id)`

  const selectByApiKeyPreview = database.prepare(() =>
    on
      .select({
        id: applications.id,
        developerId: applications.developerId,
        projectId: applications.projectId,
        environment: applications.environment,
        status: applications.status,
        otpTtlSeconds: applications.otpTtlSeconds,
        credentialsVersion: applications.credentialsVersion,
        clientIdSalt: applications.clientIdSalt,
        clientIdHash: applications.clientIdHash,
        clientSecretSalt: applications.clientSecretSalt,
        clientSecretHash: applications.clientSecretHash,
        apiKeySalt: applications.apiKeySalt,
        apiKeyHash: applications.apiKeyHash,
        developerStatus: sql<Developer['status']>`${ofDeveloper(developers.status)}`,
        plan: sql<string>`${ofDeveloper(developers.plan)}`,
      })
      .from(applications)
      .where(eq(applications.apiKeyPreview, sql.placeholder('preview'))),
  )
  const selectStanding = database.prepare(() =>
    on
      .select({
        status: applications.status,
        credentialsVersion: applications.credentialsVersion,
        developerStatus: sql<Developer['status']>`${ofDeveloper(developers.status)}`,
      })
      .from(applications)
      .where(eq(applications.id, sql.placeholder('id'))),
  )
  const listed = {
    id: applications.id,
    name: applications.name,
    projectId: applications.projectId,
    environment: applications.environment,
    status: applications.status,
    otpTtlSeconds: applications.otpTtlSeconds,
    clientSecretPreview: applications.clientSecretPreview,
    apiKeyPreview: applications.apiKeyPreview,
    clientSecretRotatedAt: applications.clientSecretRotatedAt,
    apiKeyRotatedAt: applications.apiKeyRotatedAt,
    webhookSecretRotatedAt: applications.webhookSecretRotatedAt,
    defaultLocale: applications.defaultLocale,
    webOtpDomain: applications.webOtpDomain,
    androidAppHash: applications.androidAppHash,
    createdAt: applications.createdAt,
    updatedAt: applications.updatedAt,
  }
  const list = prepareFiltered(
    database,
    ({ developerId, projectId, limit, before }: Given<ApplicationListQuery>) =>
      on
        .select(listed)
        .from(applications)
        .where(
          and(
            eq(applications.developerId, developerId),
            projectId && eq(applications.projectId, projectId),
            before && lt(applications.id, before),
          ),
        )
        .orderBy(atMost(desc(applications.id), limit)),
  )

  return {
    async find(developerId, id) {
      const [application] = await on.select().from(applications).where(owned(developerId, id))
      return application
    },

    list,

    async count(developerId) {
      const [row] = await on
        .select({ count: count() })
        .from(applications)
        .where(eq(applications.developerId, developerId))
      return row?.count ?? 0
    },

    async insert(application) {
      await on.insert(applications).values(application)
    },

    async update(developerId, id, changes, now) {
      const [changed] = await on
        .update(applications)
        .set({ ...changes, updatedAt: now })
        .where(owned(developerId, id))
        .returning()
      return changed
    },

    async rotate(developerId, id, fresh, now) {
      // A call does not present the webhook secret: one under way keeps its right when that is replaced.
      const version = applications.credentialsVersion
      const bump = fresh.type === 'webhook_secret' ? undefined : sql`${version} + 1`
      const rotated = await on
        .update(applications)
        .set({ ...columnsOf(fresh, now), credentialsVersion: bump, updatedAt: now })
        .where(owned(developerId, id))
        .returning({ id: applications.id })
      return rotated.length === 1
    },

    async delete(developerId, id) {
      const deleted = await on
        .delete(applications)
        .where(owned(developerId, id))
        .returning({ id: applications.id })
      if (deleted.length === 0) return false
      // Nobody else would: they are found by their application alone.
      await on.delete(rateAdmissions).where(eq(rateAdmissions.subject, id))
      return true
    },

    async ownerOf(id) {
      const { developerId, name } = applications
      const [owner] = await on.select({ developerId, name }).from(applications).where(eq(applications.id, id))
      return owner
    },

    findByApiKeyPreview: (preview) => selectByApiKeyPreview({ preview }),

    async recheck(id, credentialsVersion) {
      await database.lock(on, applications, applications.id, id)
      const [application] = await selectStanding({ id })
      if (application?.credentialsVersion !== credentialsVersion) return 'stale'
      if (application.status !== 'active') return 'disabled'
      return application.developerStatus === 'active' ? 'ok' : 'not_allowed'
    },
  }
}

function columnsOf(fresh: FreshCredential, now: number): Partial<Application> {
  switch (fresh.type) {
    case 'secret':
      return {
        clientSecretSalt: fresh.salt,
        clientSecretHash: fresh.hash,
        clientSecretPreview: fresh.preview,
        clientSecretRotatedAt: now,
      }
    case 'api':
      return {
        apiKeySalt: fresh.salt,
        apiKeyHash: fresh.hash,
        apiKeyPreview: fresh.preview,
        apiKeyRotatedAt: now,
      }
    case 'webhook_secret':
      return { webhookSecret: fresh.value, webhookSecretRotatedAt: now }
  }
}
