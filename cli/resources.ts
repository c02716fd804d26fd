import type { Data } from './routes.ts'

/** The API's resources as the commands show them, in the server's own types. */
export type Project = Data<'GET', '/v1/projects'>[number]
export type Application = Data<'GET', '/v1/applications'>[number]
/** The answer of the create call, the only one that holds every credential. */
export type CreatedApplication = Data<'POST', '/v1/applications'>
export type LogEntry = Data<'GET', '/v1/logs'>[number]
export type InboxItem = Data<'GET', '/v1/inbox'>[number]
