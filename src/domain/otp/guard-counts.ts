import type { Guard } from '../guard/guard.ts'
import { firstNames, type CountedMessage, type GuardKeys } from '../guard/row-keys.ts'
import { toDestination } from '../model/delivery.ts'
import type { Sender } from '../model/guard.ts'
import type { OtpRequest } from '../model/request.ts'
import type { GuardChanges } from '../store/guard.ts'
import type { Preload, Rows } from '../store/operation.ts'
import { readSender, strangerOf, type JudgedMessage } from './judge-message.ts'
import type { OtpNeeds } from './needs.ts'
import { namePhoneRows, readPhone } from './phones.ts'

type CountNeeds = Pick<OtpNeeds, 'store' | 'keys' | 'guard'>

/**
 * Reverts the guard's counts of a request whose messages no provider took, so that an outage of the providers does not get
 * countries blocked. One that a provider took counts, even if it was not delivered: it costs money. Never rejects.
 */
export function revertGuardCounts(
  needs: CountNeeds & Pick<OtpNeeds, 'delivery'>,
  request: OtpRequest,
): Promise<void> {
  const { keys, guard, delivery } = needs
  const application = { id: request.appId, developerId: request.developerId }
  const findSender = (rows: Rows) =>
    readSender(rows, application, readPhone(rows, keys, request).record, request, rows.now()).sender
  // As when it was judged. After a resend on another channel the prices of the messages may differ: they stay counted.
  const estimatePrice = () =>
    request.resends > 0 ? null : delivery.estimatePrice(toDestination(request), [request.channel])
  const revert: Guard['revert'] = (rows, counted, message, now) =>
    guard.revert(rows, counted, { ...message, estimatePrice }, now)
  return changeMessageCounts(needs, request, request.contexts, revert, findSender, (rows) => ({
    application,
    ...namePhoneRows(rows, keys, request),
  }))
}

/** As `revertGuardCounts`, for a message with the code of another system. @param judged as it was judged */
export const revertRelayedCount = (needs: CountNeeds, { message, sender }: JudgedMessage): Promise<void> =>
  changeMessageCounts(needs, message, sender.contexts, needs.guard.revert, () => sender)

const changeMessageCounts = (
  needs: CountNeeds,
  message: CountedMessage,
  contexts: readonly string[],
  change: Guard['revert'],
  findSender: (rows: Rows) => Sender,
  nameSender?: Preload['first'],
): Promise<void> =>
  changeCounts(
    needs,
    () => needs.guard.keysToRevert(message, strangerOf(message, contexts)),
    (rows, now) => change(rows.guard, needs.guard.keysToRevert(message, findSender(rows)), message, now),
    nameSender,
  )

/** A request that a proof has verified, and its sender before: there was no message to take back. */
export type RecordedProof = { request: OtpRequest; sender: Sender; guardKeys: GuardKeys | undefined }

/** Counts a phone that a proof has verified as evidence, as one that entered a code. Never rejects. */
export function countProved(
  needs: CountNeeds,
  { request, sender, guardKeys: keys }: RecordedProof,
): Promise<void> {
  const convert = (rows: Rows, now: number) => needs.guard.convert(rows.guard, keys, request, sender, now)
  return changeCounts(needs, () => keys, convert)
}

/** Changes counts of the guard in a transaction of their own. */
async function changeCounts(
  { store, guard }: CountNeeds,
  nameCounts: () => GuardKeys | undefined,
  change: (rows: Rows, now: number) => GuardChanges,
  nameOthers?: Preload['first'],
): Promise<void> {
  try {
    await store.decide({
      preload: {
        first(rows) {
          const keys = nameCounts()
          return { ...nameOthers?.(rows), guard: keys && firstNames(keys) }
        },
      },
      decide: (rows) => ({
        result: undefined,
        changes: [{ kind: 'guard', changes: change(rows, rows.now()) }],
      }),
    })
  } catch (error) {
    guard.onFault(error)
  }
}
