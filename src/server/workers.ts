import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import { onlyForeign } from '../domain/model/due-worker.ts'
import type { Store } from '../domain/store/store.ts'
import type { Leadership } from '../domain/upkeep/leadership.ts'
import { createBackfills } from '../domain/upkeep/backfills.ts'
import { evidenceBackfill, relayBackfill } from '../domain/upkeep/guard-backfills.ts'
import { createAllBackfills } from '../domain/upkeep/replaced-keys.ts'
import { createRetention } from '../domain/upkeep/retention.ts'
import type { Log } from '../log/log.ts'
import { minuteMs } from '../shared/durations.ts'
import type { WebhookWorker } from '../webhooks/worker.ts'
import { createSealTask, backfillsToSkip } from '../domain/upkeep/seal-backfills.ts'
import { createClockStepLogger, createPurgeThrottle, startPeriodicTask } from './periodic-tasks.ts'
import type { Services } from './services.ts'
import type { Storage } from './storage.ts'
import { watchOutside } from './watch-outside.ts'
import { messagesDrainMs, webhooksDrainMs, type Cleanups } from './shutdown.ts'
import type { World } from '../world/world.ts'

const expirySweepMs = 10_000
const clockCheckMs = 10_000
/** Also how soon an idle server notices replaced keys; one that writes does at once. */
const backfillsMs = 2_000
const evidenceBatch = 10_000
/** Calls of other nodes and their backfills wait for the locks of a batch. */
const sharedEvidenceBatch = 1_000
const purgeIntervalMs = 10 * minuteMs

/**
 * Starts the background work: webhooks and messages at each node; the sweeper of expired requests, retention and the backfills of
 * keys at the leader. The cleanup of a worker is added before it starts, so that a start that fails halfway is undone.
 */
export async function startWorkers(needs: {
  config: Pick<Config, 'delivery' | 'retention'>
  services: Pick<Services, 'messaging' | 'newId' | 'otp'>
  storage: Pick<Storage, 'database' | 'isNew' | 'isShared' | 'keyring'>
  webhookWorker: Pick<WebhookWorker, 'start' | 'stop'>
  store: Store
  leadership: Leadership
  clock: Clock
  /** Clock of this node, which is `clock` unless the database is shared. */
  nodeClock: Clock
  wall: Clock
  log: Log
  cleanups: Cleanups
  world: World
}): Promise<void> {
  const { config, services, webhookWorker, leadership, clock, wall, log, cleanups, world } = needs
  const store = leadership.fence(needs.store)
  const { database, keyring, isNew, isShared } = needs.storage
  const { messaging, newId, otp } = services
  const { keys } = keyring
  if (database.changes) cleanups.push(watchOutside(database.changes, { clock, log, world }))
  cleanups.push(() => webhookWorker.stop(webhooksDrainMs))
  await webhookWorker.start()
  cleanups.push(() => messaging.stop(messagesDrainMs))
  await messaging.start(config.delivery)

  const checkClockStep = createClockStepLogger({ clock: needs.nodeClock, wall, isShared }, log)
  const retention = createRetention({ store, clock, keys, settings: config.retention })
  const backfills = createAllBackfills({
    keys,
    clock,
    newId,
    random: world.random,
  })
  const createRunner = (target: Store) =>
    createBackfills({
      store: target,
      keyring,
      backfills,
      onEnded: ({ name }) => log.debug('rows were brought to the newest keys', { backfill: name }),
    })
  const runner = createRunner(store)
  if (isNew) await leadership.run(() => runner.skip(backfillsToSkip(backfills)))
  // Before the first send: without evidence, the guard takes customers for strangers. Not only at the leader, which may be a
  // node of an older release that is upgraded later.
  else {
    let batches = 0
    const batchSize = isShared ? sharedEvidenceBatch : evidenceBatch
    const goOn = async () => {
      if (++batches === 1)
        log.info(
          'the guard is counting the phones verified in the last 14 days; calls are answered after that',
        )
      return true
    }
    const names = [evidenceBackfill, relayBackfill]
    await createRunner(needs.store).run({ batchSize, yieldToRequests: goOn }, names)
  }
  // Before there are rows: later they would have to be moved into their partitions.
  if (database.postgres)
    await leadership
      .run(async () => {
        while (await store.write((tx) => tx.retention.preparePartition(clock.now())));
      })
      .catch((error: unknown) =>
        log.error('partitions could not be made; the next purge tries again', { error }),
      )
  const runBackfills = createSealTask({
    store,
    keys,
    database,
    runBackfills: (throttle) => runner.run(throttle),
    onStart: () => log.info('encrypting stored data with the newest key; otpd doctor shows the progress'),
    onSealed: () => log.info('all stored data is encrypted with the newest key'),
  })
  const createThrottle = (isStopping: () => boolean) =>
    createPurgeThrottle(world, () => isStopping() || !leadership.isLeader())
  const { changes } = store
  let areBackfillsLeft = true
  // Only other processes replace keys. Not at once: the command that did cancels codes too, and reports how many.
  const foreignChanges = changes && onlyForeign(changes, false)
  cleanups.push(
    startPeriodicTask(
      backfillsMs,
      world,
      log,
      async (isStopping) => {
        await keyring.refresh()
        await leadership.run(
          async () => (areBackfillsLeft = !(await runBackfills(createThrottle(isStopping)))),
        )
      },
      { changes: foreignChanges, untilDueMs: async () => (areBackfillsLeft ? 0 : Infinity) },
    ),
    startPeriodicTask(
      expirySweepMs,
      world,
      log,
      () => leadership.run(() => otp.expireRequests(undefined, leadership.isLeader)),
      { changes, untilDueMs: otp.untilNextExpiryMs },
    ),
    startPeriodicTask(clockCheckMs, world, log, async () => checkClockStep()),
    startPeriodicTask(purgeIntervalMs, world, log, (isStopping) =>
      leadership.run(async () => {
        await retention.purge(createThrottle(isStopping))
        await messaging.expireEarlyReceipts(createThrottle(isStopping))
      }),
    ),
  )
}
