import { attemptsMax } from '../domain/model/code.ts'
import { GuardFault } from '../domain/model/guard.ts'
import type { Operation } from '../domain/store/operation.ts'
import type { World } from '../world/world.ts'
import type { CallGroup } from './engine/database.ts'
import { RowNotNamedError } from './engine/errors.ts'
import type { StoredRows } from './stored-rows.ts'
import type { UnitOfWork } from './unit-of-work.ts'

/**
 * Creates the calls of a connection.
 *
 * @param notices.takeNotices see `CallGroup.end`
 */
export function createCalls(
  world: Pick<World, 'onBroken'>,
  unit: UnitOfWork,
  stored: StoredRows,
  notices: { forgetLeased(): void; takeNotices(): () => void },
): CallGroup<Operation<unknown>> {
  return {
    prepareAlone(failure) {
      if (failure instanceof GuardFault) unit.leaveOutGuard(failure)
    },
    load: async (operations) =>
      (await stored.load?.(operations, unit.rows.guard.fault === undefined)) ?? new Set(operations),
    decide(operation) {
      try {
        const { result, changes: decided } = operation.decide(unit.rows)
        for (const change of decided)
          if (change.kind === 'request' && change.request.attempts > attemptsMax)
            world.onBroken('attempts_within_limit', change.request.id)
        unit.add(decided)
        return result
      } catch (error) {
        // With changes of a call before it, it runs again: see `postgres/groups.ts`.
        if (error instanceof RowNotNamedError && !unit.hasChanges())
          world.onBroken('rows_named_before_decision', error.message)
        throw error
      }
    },
    hasChanges: unit.hasChanges,
    async write() {
      notices.forgetLeased()
      await unit.write()
    },
    end(isCommitted) {
      unit.clear()
      stored.end(isCommitted)
      const give = notices.takeNotices()
      return isCommitted ? give : undefined
    },
  }
}
