import type { PhoneRecord } from '../model/phone-record.ts'

/** Place of a record: its primary key, and the hash of its subscriber (`hashSubscriber`). */
export type PhoneSlot = { key: number; hash: string }

export type LoadedPhone = PhoneSlot & { record: PhoneRecord; isNew: boolean }

/**
 * Records of phones. The primary key is the beginning of the subscriber's hash: a record is one page at a random place,
 * found without an index. Of two hashes that begin alike the second goes to the next free key (linear probing).
 */
export type PhoneStore = {
  find(hash: string): Promise<PhoneRecord | undefined>
  /**
   * Loads a record and locks it until the transaction ends, also if it does not exist yet, so that concurrent calls
   * about one phone count one after the other.
   *
   * @param ifMissing returned if there is no record; the caller saves it
   * @param unsaved records by key that are not written yet
   */
  load(
    hash: string,
    ifMissing: PhoneRecord,
    unsaved?: ReadonlyMap<number, { hash: string; record: PhoneRecord }>,
  ): Promise<LoadedPhone>
  save(slot: PhoneSlot, record: PhoneRecord): Promise<void>
  delete(slot: PhoneSlot): Promise<void>
  /** Lists the developer's records with an identity, newest identity first. @param before an identity id */
  listIdentities(developerId: string, limit: number, before?: string): Promise<PhoneRecord[]>
  /** Lists all records in key order, after the slot with `afterKey`. */
  scan(afterKey: number, limit: number): Promise<Array<PhoneSlot & { record: PhoneRecord }>>
  /** Tells whether records were moved from 0.1.0 whose number was a pseudonym already: see `moveIdentities`. */
  hasPseudonymSlots(): Promise<boolean>
  notePseudonymSlots(): Promise<void>
}
