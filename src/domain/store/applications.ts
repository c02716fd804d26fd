import type {
  Application,
  NewApplication,
  ListedApplication,
  ApplicationChanges,
  FreshCredential,
  ApplicationCredentials,
} from '../model/application.ts'
import type { Environment } from '../../shared/otp-values.ts'

export type ApplicationListQuery = {
  developerId: string
  projectId?: string | undefined
  limit: number
  before?: string | undefined
}

/** Methods with a `developerId` find only that developer's applications. */
export type ApplicationStore = {
  find(developerId: string, id: string): Promise<Application | undefined>
  /** Lists newest first. @param query.before an id; lists older applications only */
  list(query: ApplicationListQuery): Promise<ListedApplication[]>
  /** Checks whether it exists or did: entries of a deleted application stay listed. */
  hasExisted(developerId: string, id: string): Promise<boolean>
  count(developerId: string): Promise<number>
  insert(application: NewApplication): Promise<void>
  update(
    developerId: string,
    id: string,
    changes: ApplicationChanges,
    now: number,
  ): Promise<Application | undefined>
  rotate(developerId: string, id: string, replacement: FreshCredential, now: number): Promise<boolean>
  /** Deletes an application with its credentials, webhook endpoints and their deliveries, and nothing else. */
  delete(developerId: string, id: string): Promise<boolean>
  /** Finds any developer's application, for the operator. */
  findOwner(id: string): Promise<{ developerId: string; name: string; environment: Environment } | undefined>
  /** Finds any developer's application, to check a signature with its webhook secret. */
  findSigning(id: string): Promise<(ApplicationCredentials & Pick<Application, 'webhookSecret'>) | undefined>
  /** Several may match: a preview has only eight characters. */
  findByApiKeyPreview(preview: string): Promise<ApplicationCredentials[]>
  /**
   * Returns a number that grows with everything that could change the result of an authentication: when it is written,
   * when that is committed, and when another process has committed. Undefined on PostgreSQL, where other nodes write.
   */
  configurationVersion(): number | undefined
}

/** `stale`: a credential was replaced, or the application deleted; `not_allowed`: its developer is disabled. */
export type CredentialState = 'ok' | 'disabled' | 'not_allowed' | 'stale'
