import { and, asc, eq } from 'drizzle-orm'
import type { MessageTemplate } from '../domain/model/message-template.ts'
import type { TemplateStore } from '../domain/store/templates.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFind } from './engine/on-table.ts'

/** Stores the templates of applications. */
export function createTemplateStore(connection: Connection): TemplateStore {
  const { database, executor } = connection
  const { applicationTemplates: templates } = database.tables
  const rows = onTable(executor, templates)
  const find = prepareFind(connection, templates, 'appId', 'name')

  const toTemplate = ({
    name,
    texts,
    createdAt,
    updatedAt,
  }: typeof templates.$inferSelect): MessageTemplate => ({
    name,
    // The assertion holds because `save` alone writes it.
    texts: Object.entries(JSON.parse(texts) as Record<string, string>).map(([locale, text]) => ({
      locale,
      text,
    })),
    createdAt,
    updatedAt,
  })

  return {
    list: async (appId) => (await rows.list(eq(templates.appId, appId), asc(templates.name))).map(toTemplate),

    async find(appId, name) {
      const row = await find({ appId, name })
      return row && toTemplate(row)
    },

    async save(appId, { name, texts, createdAt, updatedAt }) {
      const textByLocale = Object.fromEntries(texts.map(({ locale, text }) => [locale, text]))
      const values = { texts: JSON.stringify(textByLocale), updatedAt }
      const target = [templates.appId, templates.name]
      await rows.put({ appId, name, createdAt, ...values }, { target, set: values })
    },

    delete: (appId, name) => rows.delete(and(eq(templates.appId, appId), eq(templates.name, name))),
  }
}
