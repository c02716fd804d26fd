import { shellWord } from './shell-word.ts'

/**
 * Says how to take the access of other users away, in one command for files and folders.
 *
 * @param options.keepsGroup for files whose group may have access, as the secrets of Kubernetes
 */
export const restrictAccess = (paths: readonly string[], { keepsGroup = false } = {}) =>
  `Restrict ${paths.length === 1 ? 'it' : 'them'}: chmod ${keepsGroup ? 'o=' : 'go='} ${paths.map(shellWord).join(' ')}`
