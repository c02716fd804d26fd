import manifest from '../package.json' with { type: 'json' }

/** Version of the server, the command line and the package. */
export const { version } = manifest
