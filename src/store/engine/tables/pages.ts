import type { ColumnKit } from './columns.ts'

/** Ready pages and message templates of applications, and the sessions of end users on the pages. */
export const definePagesTables = (c: ColumnKit) => ({
  applicationPages: c.table('application_pages', {
    appId: c.text('app_id').primaryKey(),
    enabled: c.integer('enabled').notNull(),
    name: c.text('name'),
    logo: c.text('logo'),
    colour: c.text('colour'),
    returnOrigins: c.words('return_origins'),
  }),

  applicationTemplates: c.table('application_templates', {
    appId: c.text('app_id').notNull(),
    name: c.text('name').notNull(),
    texts: c.text('texts').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  }),

  otpSessions: c.table('otp_sessions', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    appId: c.text('app_id').notNull(),
    tokenHash: c.text('token_hash').notNull(),
    details: c.text('details').notNull(),
    status: c.text('status').notNull().$type<'created' | 'sent' | 'verified' | 'canceled'>(),
    requestId: c.text('request_id'),
    sends: c.integer('sends').notNull().default(0),
    createdAt: c.timestampMs('created_at').notNull(),
    expiresAt: c.timestampMs('expires_at').notNull(),
  }),
})
