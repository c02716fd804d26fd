import { inFile, type Sabotage } from './in-file.ts'

/** Changes that take a guarantee of the storage or of a crash point away, one each. */
export const storageSabotages: readonly Sabotage[] = [
  ...inFile(
    'store/sqlite/disk-sync.ts',
    ['store/sqlite/disk-sync'],
    [
      [
        'callers are told before the flush',
        '      try {\n        await flush()',
        '      try {\n        settle(jobs)\n        await flush()',
      ],
      ['a failed flush is ignored', 'fail([...jobs, ...unflushed.splice(0)], error)', 'settle(jobs)'],
      [
        'a read does not wait for the changes that it saw',
        '(!hasChanged && !flushing && !failure)',
        '!hasChanged',
      ],
      ['no bound of what waits for the disk', 'unflushed.length >= unflushedMax', 'false'],
      ['streams do not wait for the flush', 'if (!flushing) return', 'return'],
    ],
  ),
  ...inFile(
    'store/sqlite/disk-sync.ts',
    ['store/sqlite/disk-sync', 'faults/replay'],
    [
      [
        'commits are not flushed',
        'flush: () => syncData(world, logFile),',
        'flush: () => Promise.resolve(),',
      ],
      ['a checkpoint does not flush the file', 'await syncData(world, file)\n', ''],
      ['a checkpoint does not hold the log', 'checkpointer.hold()\n', ''],
      [
        'a failed flush of the file is ignored',
        'hasFailed = true\n      onDiskFault(error)',
        'checkpointer?.release()',
      ],
    ],
  ),
  ...inFile(
    'store/sqlite/write-queue.ts',
    [
      'store/sqlite/disk-sync',
      'store/sqlite/admission-log',
      'store/sqlite/write-queue',
      'webhooks/disk-fault',
    ],
    [
      ['commits wake no worker', 'hooks.onChanged?.()', ''],
      ['writes go on after a disk fault', 'isPoisoned = true\n', ''],
      ['no bound of the writes that wait', 'waiting.length >= waitingMax', 'false'],
      ['a body may wait for anything', 'if (hasTurnEnded) throw', 'if (false) throw'],
      [
        'a failed body leaves its writes',
        'if (!connection.inTransaction || countChanges() !== changesBefore) throw error',
        'if (!connection.inTransaction) throw error',
      ],
      ['memory is not rolled back', 'for (const one of transactionHooks) one.onRollback?.()', ''],
      [
        'notices are given before the flush',
        'job.onFlushed = group?.end(isCommitted)',
        'group?.end(isCommitted)?.()',
      ],
    ],
  ),
  ...inFile(
    'store/sqlite/lists.ts',
    ['store/sqlite/lists', 'store/lists', 'store/invariants'],
    [
      [
        'changes of lists are not written',
        'if (entries.length === 0) return\n      ownSeq',
        'if (entries.length >= 0) return\n      ownSeq',
      ],
      ['moved entries are not inserted', '        [added, insert],\n', ''],
      ['removals miss the table', '        [removed, remove],\n', ''],
      [
        'changes are deleted before they are moved',
        "deleteChanges: connection.prepare('delete from list_changes where seq < ?')",
        "deleteChanges: connection.prepare('delete from list_changes where seq < ? + 9')",
      ],
      ['lists are not undone', 'for (const undo of undos.toReversed()) undo()', ''],
    ],
  ),
  ...inFile(
    'domain/log/stream.ts',
    ['http/routes/log-stream'],
    [
      ['a stream sends what is not on disk', '          await store.whenDurable()\n', ''],
      [
        'a stream skips entries after a full page',
        'cursor = last && (hasMore || last.seq > newest.seq) ? last : newest',
        'cursor = newest',
      ],
      ['no bound of streams', 'members.size >= streamsPerDeveloperMax', 'false'],
      [
        'a revoked token keeps its stream',
        "if (code === 'UNAUTHENTICATED') return 'token_revoked'",
        "if (code === 'UNAUTHENTICATED') return null",
      ],
    ],
  ),
]
