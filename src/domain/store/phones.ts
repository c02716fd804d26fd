import type { LocatedPhone, PhoneRecord } from '../model/phone-record.ts'
import type { OldBudgets } from './check-budgets.ts'
import type { Environment } from '../../shared/otp-values.ts'

/**
 * Finds a record again to save or delete it: the hash of its phone (`hashOwnedPhone`), and its row as it was loaded, if it has
 * one: the key, and the id of the identity.
 */
export type PhoneHandle = {
  hash: string
  row: { key: number; identityId: string | null } | undefined
  /** Record and budgets that this record takes over: an operation that saves it deletes them. */
  takes?: { handle?: PhoneHandle | undefined; budgets?: OldBudgets | undefined } | undefined
}

export type LoadedPhone = PhoneHandle & { record: PhoneRecord; isNew: boolean }

/** Records of phones, in the order in which they were made. */
export type PhoneStore = {
  find(hash: string): Promise<PhoneRecord | undefined>
  /**
   * Loads a record and locks it until the transaction ends, also if it does not exist yet, so that concurrent calls
   * about one phone count one after the other. Operations on PostgreSQL lock only those that exist; of two that insert the
   * same one, the second runs again.
   *
   * @param owned of the empty record that is returned if there is none; the caller saves it
   */
  load(hash: string, owned: LocatedPhone): Promise<LoadedPhone>
  /** Loads a record and locks it as `load`, but makes none: undefined if it was deleted since it was read. */
  loadKept(hash: string): Promise<LoadedPhone | undefined>
  save(handle: PhoneHandle, record: PhoneRecord): void
  saveAll(list: ReadonlyArray<{ handle: PhoneHandle; record: PhoneRecord }>): void
  delete(handle: PhoneHandle): Promise<void>
  /**
   * Lists the developer's records with an identity, newest identity first.
   *
   * @param query.environment undefined: of both
   * @param query.before an identity id
   */
  listIdentities(
    developerId: string,
    query: { environment?: Environment | undefined; limit: number; before?: string | undefined },
  ): Promise<PhoneRecord[]>
  /** Lists all records in key order, after the one with `afterKey`. */
  scan(afterKey: number, limit: number): Promise<Array<{ key: number; hash: string; record: PhoneRecord }>>
  /** Tells whether records were moved from 0.1.0 whose number was a pseudonym already: see `moveIdentities`. */
  hasPseudonymRecords(): Promise<boolean>
  notePseudonymRecords(): Promise<void>
}
