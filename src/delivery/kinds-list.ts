import type { ProviderKind } from './kinds.ts'

/** Every kind of provider that a configuration can name, but for the inbox. */
export const providerKinds: readonly ProviderKind[] = []
