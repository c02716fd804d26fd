import { namesOf, readGuardFacts } from '../guard/facts.ts'
import type { CountedMessage, GuardedMessage } from '../guard/row-keys.ts'
import type { Sender } from '../model/guard.ts'
import { hashSubscriber } from '../model/phone-record.ts'
import type { OtpRequest } from '../model/request.ts'
import type { OtpNeeds } from './operations.ts'
import { run, type Attempt } from './run.ts'
import { otherPlaces, readMovedPhone } from './phones.ts'
import { listedSenderOf } from './sender.ts'
import type { Decision, Needs, Rows } from '../store/operation.ts'

type GuardNeeds = Pick<OtpNeeds, 'store' | 'clock' | 'keys' | 'guard'>

/**
 * Reverts the guard's counts of a request whose messages were not delivered, so that a provider outage does
 * not get countries blocked. Never rejects.
 */
export const revertGuardCounts = (needs: GuardNeeds, request: OtpRequest): Promise<void> => {
  const { appId, developerId } = request
  const origin = { id: appId, developerId }
  return revertCounts(needs, request, {
    phone: hashSubscriber(needs.keys, request),
    needs: (rows) => ({ application: origin, ...otherPlaces(rows, needs.keys, request) }),
    find(rows, readPhone, now) {
      const { record } = readPhone(rows, needs.keys, request)
      return listedSenderOf(rows, origin, record, request, now)
    },
  })
}

/** As `revertGuardCounts`, for a message with the code of another system. @param sender as it was judged */
export const revertRelayedCount = (
  needs: GuardNeeds,
  message: GuardedMessage,
  sender: Sender,
): Promise<void> => revertCounts(needs, message, { find: () => sender })

type FindSender = {
  phone?: string
  needs?(rows: Rows): Needs
  find(rows: Rows, readPhone: Attempt['readPhone'], now: number): Sender
}

async function revertCounts(needs: GuardNeeds, request: CountedMessage, sender: FindSender): Promise<void> {
  try {
    await run(needs, ({ guard, readPhone }) => {
      const keysOf = (rows: Rows, readRecord: Attempt['readPhone']) =>
        guard.keysToRevert(request, sender.find(rows, readRecord, rows.now(needs.clock)))
      return {
        needs: () => ({ phone: sender.phone }),
        further(rows) {
          const guardKeys = keysOf(rows, readMovedPhone)
          return { ...sender.needs?.(rows), guard: guardKeys && namesOf(rows.guard, guardKeys) }
        },
        decide(rows): Decision<void> {
          const guardFacts = readGuardFacts(rows.guard, keysOf(rows, readPhone))
          const changes = guard.revert(guardFacts, request, rows.now(needs.clock))
          return { result: undefined, changes: [{ kind: 'guard', changes }] }
        },
      }
    })
  } catch (error) {
    needs.guard.onFault(error)
  }
}
