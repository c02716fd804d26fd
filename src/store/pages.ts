import { defaultPage } from '../domain/model/application-page.ts'
import type { PageStore } from '../domain/store/pages.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFind } from './engine/on-table.ts'

/** Stores the ready pages of applications. */
export function createPageStore(connection: Connection): PageStore {
  const { database, executor } = connection
  const { applicationPages: pages } = database.tables
  const rows = onTable(executor, pages)
  const find = prepareFind(connection, pages, 'appId')
  return {
    async find(appId) {
      const row = await find({ appId })
      if (!row) return defaultPage
      const { enabled, name, logo, colour, returnOrigins } = row
      return { enabled: enabled === 1, name, logo, colour, returnOrigins: returnOrigins ?? [] }
    },

    async save(appId, { enabled, name, logo, colour, returnOrigins }) {
      const values = {
        enabled: enabled ? 1 : 0,
        name,
        logo,
        colour,
        returnOrigins: returnOrigins.length === 0 ? null : returnOrigins,
      }
      await rows.put({ appId, ...values }, { target: pages.appId, set: values })
    },
  }
}
