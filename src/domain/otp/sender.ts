import { findListing, withListing } from '../guard/listing.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Sender } from '../model/guard.ts'
import { isKnownPhone, type PhoneRecord } from '../model/phone-record.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Rows } from '../store/operation.ts'

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
  sentAt: record.lastSentAt,
  verifiedAt: record.identity?.lastVerifiedAt ?? 0,
  verifiedFrom: record.contexts,
})

/** Says what is known about the end user behind a request, with the verdict of the developer's rules at a time. */
export const listedSenderOf = (
  rows: Pick<Rows, 'listRules'>,
  application: Pick<CallingApplication, 'id' | 'developerId'>,
  record: PhoneRecord,
  request: OtpRequest,
  now: number,
): Sender => withListing(senderOf(record, request), findListing(rows.listRules(application), request, now))
