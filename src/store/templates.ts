import { and, asc, eq } from 'drizzle-orm'
import type { MessageTemplate } from '../domain/model/message-template.ts'
import type { TemplateStore } from '../domain/store/templates.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Stores the templates of applications. */
export function createTemplateStore(database: Database, executor: QueryExecutor): TemplateStore {
  const { applicationTemplates: templates } = database.tables
  const byName = (appId: string, name: string) => and(eq(templates.appId, appId), eq(templates.name, name))

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
    async list(appId) {
      const rows = await executor
        .select()
        .from(templates)
        .where(eq(templates.appId, appId))
        .orderBy(asc(templates.name))
      return rows.map(toTemplate)
    },

    async find(appId, name) {
      const [row] = await executor.select().from(templates).where(byName(appId, name))
      return row && toTemplate(row)
    },

    async save(appId, { name, texts, createdAt, updatedAt }) {
      const textByLocale = Object.fromEntries(texts.map(({ locale, text }) => [locale, text]))
      const values = { texts: JSON.stringify(textByLocale), updatedAt }
      await executor
        .insert(templates)
        .values({ appId, name, createdAt, ...values })
        .onConflictDoUpdate({ target: [templates.appId, templates.name], set: values })
    },

    async delete(appId, name) {
      await executor.delete(templates).where(byName(appId, name))
    },
  }
}
