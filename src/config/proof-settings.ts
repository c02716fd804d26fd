import type { Setting } from './setting.ts'

/** Settings of the `[proofs]` table, part of `settings`. */
export const proofSettings = {
  firebaseProjects: {
    name: 'proofs.firebase.projects',
    kind: 'list',
    variable: 'OTPD_FIREBASE_PROJECTS',
    default: 'none',
    description:
      'Numbers of the Firebase projects whose Phone Number Verification proves phones: Project settings, General, Project number.',
  },
} as const satisfies Record<string, Setting>
