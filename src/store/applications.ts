import { and, desc, eq, lt, sql } from 'drizzle-orm'
import {
  listedFields,
  type Application,
  type CallingApplication,
  type FreshCredential,
} from '../domain/model/application.ts'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Sealing } from './engine/sealing.ts'
import type { ApplicationListQuery, ApplicationStore, CredentialState } from '../domain/store/applications.ts'
import type { Developer } from '../domain/model/developer.ts'
import { messageFields, type MessageSettings } from '../domain/model/message-settings.ts'
import { pick } from '../shared/fields.ts'
import { selectApplications } from './app-environments.ts'
import { createBatchedLookup } from './engine/batched-lookup.ts'
import { onTable, prepareFind, prepareFindColumns } from './engine/on-table.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered, textParam } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import type { Tables } from './engine/tables.ts'

/** Selects the message settings of an application in a query that joins it. */
export const messageSettings = (applications: Tables['applications']) => pick(applications, messageFields)

/**
 * Columns of an application's developer. A subquery takes SQLite a third of the time of a join, and every application
 * request runs it.
 */
export function developerColumns({ applications, developers }: Pick<Tables, 'applications' | 'developers'>) {
  const select = <T>(column: SQLiteColumn) =>
    sql<T>`(select ${column} from ${developers} where ${developers}.id = ${applications}.developer_id)`
  return {
    developerStatus: select<Developer['status']>(developers.status),
    plan: select<string>(developers.plan),
  }
}

export function createApplicationStore(connection: Connection): ApplicationStore {
  const { database, executor, sealing } = connection
  const { applications, deletedApplications } = database.tables
  const rows = onTable(executor, applications)
  const find = prepareFind(connection, applications, 'id', 'developerId')
  const configurationChanged = () => database.sqlite?.configuration.increment()
  const byOwnerAndId = (developerId: string, id: string) =>
    and(eq(applications.id, id), eq(applications.developerId, developerId))

  const toApplication = (row: typeof applications.$inferSelect): Application => ({
    ...row,
    webhookSecret: openWebhookSecret(sealing, row.id, row.webhookSecret),
  })

  // prettier-ignore
  const callerColumns = {
    ...pick(applications, [
      'id', 'developerId', 'projectId', 'environment', 'status', 'otpTtlSeconds', 'countries', 'credentialsVersion',
      'clientIdSalt', 'clientIdHash', 'clientSecretSalt', 'clientSecretHash', 'apiKeySalt', 'apiKeyHash',
      ...messageFields,
    ]),
    ...developerColumns(database.tables),
  }
  const selectByApiKeyPreview = database.prepare(() =>
    executor
      .select(callerColumns)
      .from(applications)
      .where(eq(applications.apiKeyPreview, sql.placeholder('preview'))),
  )
  const selectByApiKeyPreviews = database.prepare(() =>
    executor
      .select({ ...callerColumns, preview: applications.apiKeyPreview })
      .from(applications)
      .where(sql`${applications.apiKeyPreview} = any(${sql.placeholder('previews')}::text[])`),
  )
  const findByApiKeyPreviews = createBatchedLookup(
    async (previews) => Map.groupBy(await selectByApiKeyPreviews({ previews }), ({ preview }) => preview),
    database.world.timers,
  )
  // Prepared because every call that is signed or has a token runs it, and every step on the ready page.
  const signingColumns = { ...callerColumns, webhookSecret: applications.webhookSecret }
  const findSigning = prepareFindColumns(connection, applications, signingColumns, 'id')
  const selectExisted = database.prepare(() =>
    selectApplications(connection, (table) =>
      and(eq(table.id, textParam('id')), eq(table.developerId, textParam('developerId'))),
    ),
  )
  const list = prepareFiltered(
    database,
    ({ developerId, projectId, limit, before }: FilterPlaceholders<ApplicationListQuery>) =>
      executor
        .select(pick(applications, listedFields))
        .from(applications)
        .where(
          and(
            eq(applications.developerId, developerId),
            projectId && eq(applications.projectId, projectId),
            before && lt(applications.id, before),
          ),
        )
        .orderBy(orderByLimit(desc(applications.id), limit)),
  )

  return {
    async find(developerId, id) {
      const application = await find({ id, developerId })
      return application && toApplication(application)
    },

    list: (query) => list(query),

    hasExisted: async (developerId, id) => (await selectExisted({ developerId, id })).length > 0,

    count: (developerId) => rows.count(eq(applications.developerId, developerId)),

    async insert(application) {
      // Typed as a row that was read, so that the compiler finds a column without a field.
      const row: typeof applications.$inferSelect = {
        ...application,
        webhookSecret: sealing.sealText(webhookSecretColumn, application.id, application.webhookSecret),
      }
      await rows.insert(row)
      configurationChanged()
    },

    async update(developerId, id, changes, now) {
      const [changed] = await rows.change({ ...changes, updatedAt: now }, byOwnerAndId(developerId, id))
      configurationChanged()
      return changed && toApplication(changed)
    },

    async rotate(developerId, id, replacement, now) {
      // Requests do not authenticate with the webhook secret, so replacing it must not reject those in progress.
      const version = applications.credentialsVersion
      const nextVersion = replacement.type === 'webhook_secret' ? undefined : sql`${version} + 1`
      const columns = credentialColumns(sealing, id, replacement, now)
      const isRotated = await rows.updateOne(
        { ...columns, credentialsVersion: nextVersion, updatedAt: now },
        byOwnerAndId(developerId, id),
      )
      configurationChanged()
      return isRotated
    },

    async delete(developerId, id) {
      const [deleted] = await rows.take(byOwnerAndId(developerId, id))
      // Its requests and log entries stay listed.
      if (deleted)
        await onTable(executor, deletedApplications).insert({
          id,
          developerId,
          environment: deleted.environment,
        })
      configurationChanged()
      return deleted !== undefined
    },

    async findOwner(id) {
      const { developerId, name, environment } = applications
      const [owner] = await executor
        .select({ developerId, name, environment })
        .from(applications)
        .where(eq(applications.id, id))
      return owner
    },

    async findSigning(id) {
      const row = await findSigning({ id })
      return row && { ...row, webhookSecret: openWebhookSecret(sealing, row.id, row.webhookSecret) }
    },

    findByApiKeyPreview: async (preview) =>
      database.postgres ? findByApiKeyPreviews(preview) : selectByApiKeyPreview({ preview }),

    configurationVersion() {
      if (executor === database.read) database.sqlite?.refresh()
      return database.sqlite?.configuration.current()
    },
  }
}

type CredentialRow = Pick<Application, 'status' | 'credentialsVersion'> & {
  developerStatus: Developer['status']
}

/** A caller of an operation, as it is now. */
export type CallerRow = CredentialRow &
  Pick<CallingApplication, 'plan' | 'otpTtlSeconds' | 'countries'> &
  MessageSettings & {
    /** Version of the developer's rules for the guard; null if there are none. */
    rulesVersion: number | null
  }

/** @param credentialsVersion those that the caller was authenticated with */
export function toCredentialState(
  application: CredentialRow | undefined,
  credentialsVersion: number,
): CredentialState {
  if (application?.credentialsVersion !== credentialsVersion) return 'stale'
  if (application.status !== 'active') return 'disabled'
  return application.developerStatus === 'active' ? 'ok' : 'not_allowed'
}

const webhookSecretColumn = 'applications.webhook_secret'

/** Decrypts the webhook secret of an application. @returns null if it cannot be decrypted */
export const openWebhookSecret = (sealing: Sealing, appId: string, stored: string): string | null =>
  sealing.openText(webhookSecretColumn, appId, stored)

function credentialColumns(
  sealing: Sealing,
  id: string,
  replacement: FreshCredential,
  now: number,
): Partial<Tables['applications']['$inferSelect']> {
  switch (replacement.type) {
    case 'secret':
      return {
        clientSecretSalt: replacement.salt,
        clientSecretHash: replacement.hash,
        clientSecretPreview: replacement.preview,
        clientSecretRotatedAt: now,
      }
    case 'api':
      return {
        apiKeySalt: replacement.salt,
        apiKeyHash: replacement.hash,
        apiKeyPreview: replacement.preview,
        apiKeyRotatedAt: now,
      }
    case 'webhook_secret':
      return {
        webhookSecret: sealing.sealText(webhookSecretColumn, id, replacement.value),
        webhookSecretRotatedAt: now,
      }
  }
}
