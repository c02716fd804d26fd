import type { InboxItem } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { usePolled, type Polled } from './use-polled.ts'

/** The newest messages that were kept here instead of sent, each with its code while that is good. */
export function useInbox(): Polled<InboxItem[]> {
  const { api } = useConsole()
  return usePolled('inbox', async () => {
    const { data } = await api.asDeveloper('GET', '/v1/inbox', { query: { limit: '200' } })
    return data
  })
}
