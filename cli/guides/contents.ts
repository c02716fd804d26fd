/** The guides by section, in the order of the navigation. Each name is a file `src/docs/NAME.md` and an address `/docs/NAME`. */
export const contents: ReadonlyArray<{ section: string; pages: readonly string[] }> = [
  {
    section: 'Start',
    pages: [
      'index',
      'quickstart',
      'sending',
      'webhooks',
      'testing',
      'twilio',
      'better-auth',
      'supabase',
      'kratos',
      'camara',
    ],
  },
  {
    section: 'Run',
    pages: [
      'install',
      'operating',
      'kubernetes',
      'upgrading',
      'tls',
      'providers',
      'messages',
      'guard',
      'challenge',
      'backup',
      'data',
      'many-nodes',
      'troubleshooting',
    ],
  },
  { section: 'Use', pages: ['console', 'accounts', 'support'] },
  { section: 'Reference', pages: ['errors', 'events', 'limits', 'configuration', 'commands'] },
  { section: 'Background', pages: ['security', 'performance', 'architecture', 'decisions'] },
]
