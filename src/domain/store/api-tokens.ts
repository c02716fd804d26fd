import type { ApiToken } from '../model/api-token.ts'
import type { Developer } from '../model/developer.ts'

/** An API token as stored: its value only as salted SHA-256, both in hex. */
type StoredApiToken = ApiToken & { salt: string; hash: string }

/** Methods with a `developerId` find only that developer's tokens. */
export type ApiTokenStore = {
  /** Finds the tokens with a preview and their developers. Several may match, since a preview has only 32 bits. */
  findByPreview(preview: string): Promise<Array<{ token: StoredApiToken; developer: Developer }>>
  /** Lists newest first. @param before an id; lists older tokens only */
  list(developerId: string, limit: number, before?: string): Promise<ApiToken[]>
  count(developerId: string): Promise<number>
  /** Inserts in one statement. @returns false if the developer has a token of that name */
  insert(token: StoredApiToken): Promise<boolean>
  /** Records a use, unless one is recorded since `usedUntil`. */
  markUsed(id: string, now: number, usedUntil: number): Promise<void>
  /** Deletes a token. @returns its name; undefined if there is none */
  delete(developerId: string, id: string): Promise<string | undefined>
  deleteByDeveloper(developerId: string): Promise<void>
  /** Deletes tokens that have expired. @param name of the one to delete; without it all of the developer */
  deleteExpired(developerId: string, now: number, name?: string): Promise<void>
}
