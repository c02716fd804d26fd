/** Entry point of the server code, loaded lazily by the command line: most commands never need it. */
export * from '../config/changes.ts'
export * from '../config/config.ts'
export { listNewerSettings } from '../config/new-settings.ts'
export { channelsWithProviderText } from '../delivery/providers/all-provider-kinds.ts'
export * from '../delivery/text/template-lint.ts'
export * from '../host/host.ts'
export * from './start.ts'
export { tryChallenge } from './try-challenge.ts'
