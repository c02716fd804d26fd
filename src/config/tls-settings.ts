import type { Setting } from './setting.ts'

/** Names of the server. They come first, because they decide what address and URL are by default. */
export const domainSettings = {
  tlsDomains: {
    name: 'tls.domains',
    kind: 'list',
    variable: 'OTPD_TLS_DOMAINS',
    flag: '--domain',
    default: 'none',
    description:
      'Names of this server. otpd gets a certificate for them by ACME (HTTP-01), renews it, and listens on 0.0.0.0:443.',
  },
} as const satisfies Record<string, Setting>

/** Settings of HTTPS: a certificate in files, or certificates by ACME. */
export const tlsSettings = {
  tlsCertFile: {
    name: 'tls.certFile',
    kind: 'text',
    variable: 'OTPD_TLS_CERT_FILE',
    flag: '--tls-cert',
    default: 'none',
    description: 'Your own certificate in PEM, with its chain. It is read again when it changes.',
  },
  tlsKeyFile: {
    name: 'tls.keyFile',
    kind: 'text',
    variable: 'OTPD_TLS_KEY_FILE',
    flag: '--tls-key',
    default: 'none',
    description: 'The private key of that certificate in PEM. Other users must not read it.',
  },
  tlsEmail: {
    name: 'tls.email',
    kind: 'text',
    variable: 'OTPD_TLS_EMAIL',
    default: 'none',
    description: 'E-mail address that the certificate authority may write to.',
  },
  tlsDirectoryUrl: {
    name: 'tls.directoryUrl',
    kind: 'text',
    variable: 'OTPD_TLS_DIRECTORY_URL',
    default: "Let's Encrypt",
    description: 'ACME directory of the certificate authority, such as one of your company.',
  },
  tlsDirectoryCaFile: {
    name: 'tls.directoryCaFile',
    kind: 'text',
    variable: 'OTPD_TLS_DIRECTORY_CA_FILE',
    default: 'none',
    description: 'Root certificate in PEM that the directory is trusted by, if it is not a public one.',
  },
  tlsHttpListen: {
    name: 'tls.httpListen',
    kind: 'text',
    variable: 'OTPD_TLS_HTTP_LISTEN',
    default: '0.0.0.0:80 with domains, otherwise off',
    description: 'HOST:PORT for plain HTTP: challenges of the certificate authority, and redirects to HTTPS.',
  },
  tlsHstsSeconds: {
    name: 'tls.hstsSeconds',
    kind: 'integer',
    variable: 'OTPD_TLS_HSTS_SECONDS',
    default: '0',
    description:
      'Seconds for which browsers use only HTTPS for this name (Strict-Transport-Security); 0 does not say so.',
  },
} as const satisfies Record<string, Setting>
