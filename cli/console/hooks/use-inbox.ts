import { useResource } from './use-resource.ts'

/** Polls the newest messages that were kept in the inbox instead of sent; each has its code while that is valid. */
export const useInbox = () => useResource('/v1/inbox', { query: { limit: '200' } })
