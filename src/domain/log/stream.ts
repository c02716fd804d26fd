import type { Environment } from '../model/application.ts'
import type { Developer } from '../model/developer.ts'
import { invalidField, ServiceError } from '../model/errors.ts'
import type { LogType } from '../../shared/event-kinds.ts'
import type { LogEntry } from '../model/log-entry.ts'
import { isId } from '../model/ids.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

/** Keeps one developer's forgotten terminals from exhausting everyone's connections. Each node counts alone. */
export const streamsPerDeveloperMax = 20

/** Value of `after` that streams the whole log from its start. */
export const logStart = `evt_${'0'.repeat(26)}`

const entriesPerRead = 100

type LogStreamFilter = {
  appId?: string | undefined
  environment?: Environment | undefined
  types?: readonly LogType[] | undefined
  /** The id of an entry, or `logStart`; without it the stream starts with new entries. */
  after?: string | undefined
}

/** The reader's right to a stream. */
export type StreamAccess = {
  /** Milliseconds since the epoch; infinite for a token that does not expire. */
  tokenExpiresAt: number
  /** Checks the token again. @throws UNAUTHENTICATED it was revoked; FORBIDDEN the developer is disabled */
  revalidate(): Promise<void>
}

/** Reason why the stream has ended; `closed` means by its reader. */
type StreamEndReason = 'draining' | 'token_expired' | 'token_revoked' | 'not_allowed' | 'closed'

type LogBatch = {
  /** In commit order, without duplicates across reads. */
  entries: LogEntry[]
  /** Id of an entry: resuming after it gives no gaps and no duplicates. */
  position: string
  /** More entries may be available immediately. */
  hasMore: boolean
  endReason: StreamEndReason | null
}

/** A cursor over the log. It buffers no entries, so a reader that stops reading costs only this object. */
export type LogStream = {
  /** Reads the next entries, at most 100; returns none if there are none yet. */
  read(): Promise<LogBatch>
  /** Resolves when there may be new entries or the stream may have ended. Supports one waiter at a time. */
  waitForChange(): Promise<void>
  /** Expiry of the token, and so of the stream, in milliseconds since the epoch. */
  endsAt: number
  close(): void
}

export type LogStreams = ReturnType<typeof createLogStreams>

/** Creates live streams of the log for any number of readers. */
export function createLogStreams({ store, clock }: { store: Store<'events'>; clock: Clock }) {
  const { events } = store.read
  const openStreams = new Map<string, Set<{ wake(): void; onDrain?: (() => void) | undefined }>>()
  let draining = false

  /** Registers a stream. @returns a function that unregisters it */
  function register(developerId: string, member: { wake(): void; onDrain?: (() => void) | undefined }) {
    if (draining)
      throw new ServiceError('UNAVAILABLE', 'The server is shutting down. Retry in a second.', {
        retryAfterSeconds: 1,
      })
    const members = openStreams.get(developerId) ?? new Set()
    if (members.size >= streamsPerDeveloperMax) {
      throw new ServiceError(
        'RATE_LIMITED',
        `You already have ${streamsPerDeveloperMax} log streams open, the maximum. Close one, then retry.`,
        {
          reason: 'STREAM_LIMIT',
          retryAfterSeconds: 10,
          metadata: { limit: streamsPerDeveloperMax },
        },
      )
    }
    openStreams.set(developerId, members.add(member))
    return () => {
      members.delete(member)
      if (members.size === 0 && openStreams.get(developerId) === members) openStreams.delete(developerId)
    }
  }

  async function findStart(developerId: string, after: string | undefined) {
    if (after === logStart) return { seq: 0, id: logStart }
    if (after === undefined) {
      const [newest] = await events.list(developerId, { limit: 1 })
      return newest ?? { seq: 0, id: logStart }
    }
    const seq = isId('evt', after) ? await events.findSeq(developerId, after) : undefined
    if (seq !== undefined) return { seq, id: after }
    throw invalidField(
      'query',
      'after',
      'Your log has no entry with this id. Use the id of an entry that you received.',
    )
  }

  return {
    /** Whether any stream is open. */
    isInUse: () => openStreams.size > 0,

    /**
     * Opens a stream.
     *
     * @param onDrain called when the service shuts down, even if the stream is not being read
     * @throws INVALID_ARGUMENT `after` is unknown; RATE_LIMITED (STREAM_LIMIT) the developer has 20 open streams;
     *   UNAVAILABLE the service is shutting down
     */
    async open(
      developer: Developer & StreamAccess,
      { appId, environment, types, after }: LogStreamFilter,
      onDrain?: () => void,
    ): Promise<LogStream> {
      let dirty = true
      let closed = false
      let notify: (() => void) | undefined
      const wake = () => {
        dirty = true
        notify?.()
        notify = undefined
      }
      const unregister = register(developer.id, { wake, onDrain })
      const close = () => {
        closed = true
        unregister()
        wake()
      }
      let cursor = await findStart(developer.id, after).catch((error: unknown) => {
        close()
        throw error
      })
      await store.whenDurable()

      const findEndReason = async (): Promise<StreamEndReason | null> => {
        if (closed) return 'closed'
        if (draining) return 'draining'
        if (clock.now() >= developer.tokenExpiresAt) return 'token_expired'
        // Before every page: no entry may reach a reader whose session has ended, on another node too.
        try {
          await developer.revalidate()
          return null
        } catch (error) {
          const code = error instanceof ServiceError ? error.code : undefined
          if (code === 'UNAUTHENTICATED') return 'token_revoked'
          if (code === 'FORBIDDEN') return 'not_allowed'
          throw error
        }
      }
      const emptyBatch = (endReason: StreamEndReason | null): LogBatch => ({
        entries: [],
        position: cursor.id,
        hasMore: false,
        endReason,
      })

      return {
        async read() {
          dirty = false
          const endReason = await findEndReason()
          if (endReason !== null) return emptyBatch(endReason)
          // Read before the page: entries up to `newest` that the page omits do not match the filter.
          const [newest] = await events.list(developer.id, { limit: 1 })
          if (!newest || newest.seq <= cursor.seq) return emptyBatch(null)
          const query = { appId, environment, types, limit: entriesPerRead, afterSeq: cursor.seq }
          const entries = await events.list(developer.id, query)
          // A power cut could take back an entry that is not on disk, and its reader could not resume after it.
          await store.whenDurable()
          const last = entries.at(-1)
          const hasMore = entries.length === entriesPerRead
          cursor = last && (hasMore || last.seq > newest.seq) ? last : newest
          if (hasMore) dirty = true
          return { entries, position: cursor.id, hasMore, endReason: null }
        },
        waitForChange: () => (dirty ? Promise.resolve() : new Promise((resolve) => (notify = resolve))),
        endsAt: developer.tokenExpiresAt,
        close,
      }
    },

    /**
     * Signals that there may be new entries or that access may have ended, of one developer or of any. Cheap to call
     * often.
     */
    wake(developerId?: string): void {
      const groups =
        developerId === undefined ? [...openStreams.values()] : [openStreams.get(developerId) ?? []]
      for (const members of groups) for (const member of members) member.wake()
    },

    /** Ends all streams and rejects new ones, for the shutdown. */
    drain(): void {
      draining = true
      for (const members of openStreams.values()) {
        for (const member of members) {
          member.wake()
          member.onDrain?.()
        }
      }
    },
  }
}
