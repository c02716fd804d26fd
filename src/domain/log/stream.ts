import type { Developer } from '../accounts/developers.ts'
import { invalidField, ServiceError } from '../model/errors.ts'
import { listForward, type LogEntry, type LogType } from './events.ts'
import { isId } from '../model/ids.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

/** So that one developer's forgotten terminals cannot use up the connections of all. */
export const streamsPerDeveloperMax = 20

/** As `after`: the whole log, from its beginning. */
export const logStart = `evt_${'0'.repeat(26)}`

const entriesPerRead = 100
/** Nobody who was disabled reads on for longer than this. */
const revalidateMs = 10_000

export type LogStreamFilter = {
  appId?: string | undefined
  types?: readonly LogType[] | undefined
  /** The id of an entry, or `logStart`; without it the stream begins with what comes. */
  after?: string | undefined
}

/** Why there will be nothing more; `closed` by its reader. */
export type StreamEndReason = 'draining' | 'token_expired' | 'not_allowed' | 'closed'

export type LogBatch = {
  /** In the order of commits, each once over all reads. */
  entries: LogEntry[]
  /** The entry up to which the log has been looked at: going on after it misses nothing and repeats nothing. */
  position: string
  /** There may be more at once. */
  hasMore: boolean
  endReason: StreamEndReason | null
}

/**
 * A place in the log that moves on when it is read. It holds no entries: a reader that stops asking costs what this
 * object costs.
 */
export type LogStream = {
  /** The next entries, at most 100; none where there are none now. */
  read(): Promise<LogBatch>
  /** Resolves when reading may give something. For one waiter at a time. */
  waitForChange(): Promise<void>
  /** Milliseconds since the epoch: when the token ends, and the stream with it. */
  endsAt: number
  close(): void
}

export type LogStreams = ReturnType<typeof createLogStreams>

/** The log as it grows, for any number of readers. */
export function createLogStreams(needs: { store: Store; clock: Clock }) {
  const { clock } = needs
  const { events, developers } = needs.store.read
  const openStreams = new Map<string, Set<{ wake(): void; onDrain?: (() => void) | undefined }>>()
  let draining = false

  /** Registers a stream; what it takes is given back by the function that this returns. */
  function register(developerId: string, member: { wake(): void; onDrain?: (() => void) | undefined }) {
    if (draining)
      throw new ServiceError('UNAVAILABLE', 'The service is restarting.', { retryAfterSeconds: 1 })
    const members = openStreams.get(developerId) ?? new Set()
    if (members.size >= streamsPerDeveloperMax) {
      throw new ServiceError('RATE_LIMITED', 'Too many streams are open. Close one.', {
        reason: 'STREAM_LIMIT',
        retryAfterSeconds: 10,
        metadata: { limit: streamsPerDeveloperMax },
      })
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
    throw invalidField('query', 'after', 'There is no such entry.')
  }

  return {
    /**
     * @param developer.tokenExpiresAt milliseconds since the epoch
     * @param onDrain told when the service ends, also where nobody reads the stream
     * @throws INVALID_ARGUMENT an unknown `after`; RATE_LIMITED (STREAM_LIMIT) more than 20 of this developer;
     *   UNAVAILABLE the service ends
     */
    async open(
      developer: Developer & { tokenExpiresAt: number },
      { appId, types, after }: LogStreamFilter,
      onDrain?: () => void,
    ): Promise<LogStream> {
      let dirty = true
      let closed = false
      let notify: (() => void) | undefined
      let checkedAt = clock.now()
      let isAllowed = true
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

      const findEndReason = async (): Promise<StreamEndReason | null> => {
        if (closed) return 'closed'
        if (draining) return 'draining'
        const now = clock.now()
        if (now >= developer.tokenExpiresAt) return 'token_expired'
        if (now - checkedAt >= revalidateMs) {
          checkedAt = now
          isAllowed = (await developers.find(developer.id))?.status === 'active'
        }
        return isAllowed ? null : 'not_allowed'
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
          // Looked at first: whatever the page below leaves out up to here is not for this stream.
          const [newest] = await events.list(developer.id, { limit: 1 })
          if (!newest || newest.seq <= cursor.seq) return emptyBatch(null)
          const filter = { appId, types, limit: entriesPerRead }
          const scan = await listForward(needs.store.read, developer.id, filter, cursor.seq)
          const { entries } = scan
          const last = entries.at(-1)
          const isPageFull = entries.length === entriesPerRead
          cursor = last && (isPageFull || last.seq > newest.seq) ? last : (scan.scannedTo ?? newest)
          const hasMore = isPageFull || scan.scannedTo !== undefined
          if (hasMore) dirty = true
          return { entries, position: cursor.id, hasMore, endReason: null }
        },
        waitForChange: () => (dirty ? Promise.resolve() : new Promise((resolve) => (notify = resolve))),
        endsAt: developer.tokenExpiresAt,
        close,
      }
    },

    /** Tells that there may be new entries, of one developer or of anyone. Costs little where it is called often. */
    wake(developerId?: string): void {
      const groups =
        developerId === undefined ? [...openStreams.values()] : [openStreams.get(developerId) ?? []]
      for (const members of groups) for (const member of members) member.wake()
    },

    /** Ends every stream, and opens no more. */
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
