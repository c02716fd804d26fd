import { useResource } from './use-resource.ts'

/** Polls the operator's providers and their circuits. */
export const useProviders = () => useResource('/v1/providers', {}, { intervalMs: 5000 })
