import type { Violation } from './model.ts'
import type { Node } from './node.ts'
import type { Scheduler } from './scheduler.ts'
import type { Shop } from './shop.ts'

export type LogReader = ReturnType<typeof createLogReader>

/** Creates a reader of the event stream, which resumes where it was when its connection ends. */
export function createLogReader(needs: {
  scheduler: Scheduler
  node: () => Node | undefined
  shop: Shop
  onViolation(one: Violation): void
  trace(line: string): void
}) {
  const { scheduler, node, shop, onViolation, trace } = needs
  /** Ids of the entries, in the order in which they came. */
  const ids: string[] = []
  const seen = new Set<string>()
  let lastId = `evt_${'0'.repeat(26)}`
  let reader: { cancel(): Promise<void> } | undefined
  let opened = 0

  async function read(number: number): Promise<void> {
    const current = node()
    if (!current || reader) return
    const request = new Request('http://otpd.sim/v1/logs/stream', {
      headers: { host: 'otpd.sim', ...shop.token, 'last-event-id': lastId },
    })
    const response = await current.call(request)
    if (response.status !== 200 || !response.body) return
    const mine = response.body.getReader()
    reader = mine
    const utf8 = new TextDecoder()
    let text = ''
    for (;;) {
      const { value, done } = await mine.read()
      // Nothing is received after the process has ended, or the reader has left.
      if (done || number !== opened || !current.isAlive()) return
      text += utf8.decode(value, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) readBlock(block)
    }
  }

  function readBlock(block: string) {
    const id = /^id: (.+)$/m.exec(block)?.[1]
    if (id === undefined) return
    if (/^data: /m.test(block)) {
      if (seen.has(id)) onViolation({ rule: 'a stream repeats nothing', detail: id })
      seen.add(id)
      ids.push(id)
      trace(`stream ${id}`)
    }
    lastId = id
  }

  function close() {
    opened++
    const ending = reader
    reader = undefined
    void ending?.cancel().catch(() => {})
  }

  return {
    ids,
    /** Reads for that long. */
    open(forMs: number) {
      close()
      const number = opened
      void read(number)
        .catch(() => {})
        .finally(() => {
          if (number === opened) reader = undefined
        })
      scheduler.after(forMs, () => {
        if (number === opened) close()
      })
    },
    close,
  }
}
