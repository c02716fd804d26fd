import { expect, spyOn, test } from 'bun:test'
import { Client } from 'pg'
import type { LogType } from '../../../src/shared/event-kinds.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestPostgres } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { testPostgresUrl } from '../../helpers/postgres.ts'

type Query = (this: Client, ...args: unknown[]) => unknown

test.skipIf(!testPostgresUrl)(
  'a reader of several types misses no entry that another node writes while a page is read',
  async () => {
    const opened = await openTestPostgres(testPostgresUrl ?? '')
    const [store, otherNode] = [opened.database, opened.openNode()].map((database) =>
      createStore(database, { keys: testKeys }),
    )
    const append = (type: LogType) =>
      otherNode?.write(async (tx) => {
        const at = { requestId: null, phone: null, status: null, detail: null, at: 0 }
        await tx.events.append([{ entry: { type, developerId: 'dev_1', appId: 'app_1', ...at } }])
      })
    const query = Client.prototype.query as unknown as Query
    let reads = 0
    const spy = spyOn(Client.prototype, 'query').mockImplementation(async function (
      this: Client,
      ...args: unknown[]
    ) {
      const { text = '' } = args[0] as { text?: string }
      const isRead = /^select .*from "events"/.test(text)
      if (isRead && reads++ === 1) {
        await append('otp.sent')
        await append('otp.verified')
      }
      return query.apply(this, args)
    } as never)
    try {
      const types: LogType[] = ['otp.sent', 'otp.verified']
      const read = (afterSeq: number) => store?.read.events.list('dev_1', { types, limit: 10, afterSeq })
      const first = (await read(0)) ?? []
      // The second page is read later; then the other node has written in any case.
      const second = (await read(first.at(-1)?.seq ?? 0)) ?? []
      expect([...first, ...second].map(({ type }) => type)).toEqual(types)
    } finally {
      spy.mockRestore()
      await opened.dispose()
    }
  },
)
