import type { Sender } from '../guard/guard.ts'
import { isKnownPhone, type PhoneRecord } from '../model/phone-record.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Stores } from '../store/store.ts'
import { findPhone, type PhoneKeys } from './phones.ts'

/**
 * Says what is known about the end user behind a request, as at its send: the guard counted its messages by that.
 *
 * @param record without a verification of this request
 */
export const senderOf = (
  record: PhoneRecord,
  { contexts, createdAt }: Pick<OtpRequest, 'contexts' | 'createdAt'>,
): Sender => ({
  isKnownPhone:
    isKnownPhone(record, createdAt) && (record.identity?.firstVerifiedAt ?? createdAt) < createdAt,
  contexts,
})

/** Reads the sender of a request that was not verified, without locking its phone. */
export const readSender =
  (keys: PhoneKeys, request: OtpRequest) =>
  async (tx: Pick<Stores, 'phones'>): Promise<Sender> => {
    const found = await findPhone(tx, keys, request)
    return found ? senderOf(found.record, request) : { isKnownPhone: false, contexts: request.contexts }
  }
