import { systemWorld } from '../../world/system.ts'
import type { Timers } from '../../world/world.ts'

/**
 * Creates a look-up whose calls share queries: those of one turn of the event loop are answered by one. On a database
 * behind a network a query costs the same for one key as for fifty.
 *
 * @param load reads what the keys have; those that have nothing may be missing
 */
export function createBatchedLookup<V>(
  load: (keys: readonly string[]) => Promise<ReadonlyMap<string, V[]>>,
  { nextTurn }: Timers = systemWorld.timers,
) {
  type Batch = { keys: Set<string>; found: Promise<ReadonlyMap<string, V[]>> }
  let open: Batch | undefined

  function start(): Batch {
    const keys = new Set<string>()
    const found = nextTurn().then(() => {
      open = undefined
      return load([...keys])
    })
    return { keys, found }
  }

  return async (key: string): Promise<V[]> => {
    open ??= start()
    open.keys.add(key)
    return (await open.found).get(key) ?? []
  }
}
