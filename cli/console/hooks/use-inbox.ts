import type { InboxItem } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { usePolled, type Polled } from './use-polled.ts'

/** Polls the newest messages that were kept in the inbox instead of sent; each has its code while that is valid. */
export function useInbox(): Polled<InboxItem[]> {
  const { api } = useConsole()
  return usePolled('inbox', async () => {
    const { data } = await api.asDeveloper('GET', '/v1/inbox', { query: { limit: '200' } })
    return data
  })
}
