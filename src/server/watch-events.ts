import { createEventWatch, eventWatchMs } from '../domain/log/event-watch.ts'
import type { Store } from '../domain/store/store.ts'
import type { Log } from '../log/log.ts'
import type { WebhookWorker } from '../webhooks/worker.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Services } from './services.ts'
import type { World } from '../world/world.ts'

/** Wakes streams and the webhook worker for what other nodes write. @returns stops the watch */
export function watchEvents(
  store: Store,
  { logStreams }: Pick<Services, 'logStreams'>,
  webhookWorker: Pick<WebhookWorker, 'hasPending' | 'wakeIfDue'>,
  log: Log,
  world: World,
) {
  const look = createEventWatch({
    store,
    isNeeded: () => logStreams.isInUse() || webhookWorker.hasPending(),
    async onEntries(developerIds) {
      if (developerIds === undefined) logStreams.wake()
      else for (const id of developerIds) logStreams.wake(id)
      await webhookWorker.wakeIfDue()
    },
  })
  return startPeriodicTask(eventWatchMs, world, log, look)
}
