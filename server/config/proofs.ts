/** Sections about what consumers and this server prove themselves with, beside passwords. */
import { z } from 'zod'
import { filled, key, pathOrOff, text } from './kinds.ts'

export const tls = z
  .strictObject({
    cert: key(pathOrOff(), '', 'The certificate of this server with its chain, a PEM file.'),
    key: key(pathOrOff(), '', 'Its private key, a PEM file that only the server may read.'),
    client_ca: key(
      pathOrOff(),
      '',
      'Authorities whose certificates consumers may log in with, a PEM file; each that issues some itself has to be in it.',
    ),
    client_revoked: key(
      pathOrOff(),
      '',
      'Client certificates that are good no more: a serial number or SHA-256 fingerprint per line.',
    ),
  })
  .superRefine((section, context) => {
    const missing = (path: 'cert' | 'key', also: keyof typeof section): void =>
      context.addIssue({
        code: 'custom',
        path: [path],
        params: { also },
        message: `is missing: \`tls.${also}\` needs it`,
      })
    const needed = (['cert', 'key', 'client_ca', 'client_revoked'] as const).find((key) => section[key] !== '')
    if (needed === undefined) return
    if (section.cert === '') missing('cert', needed)
    if (section.key === '') missing('key', needed)
    if (section.client_ca === '' && section.client_revoked !== '') {
      const message = 'says nothing without `tls.client_ca`: no client certificate is taken'
      context.addIssue({ code: 'custom', path: ['client_revoked'], params: { also: 'client_ca' }, message })
    }
  })
  .describe(
    '`cert` and `key` together switch TLS on: as the layer `tls` of `listen.tcp`, and for `listen.tls` and ' +
      '`listen.https`. All four files are looked at every second and read again when they change; one that is no ' +
      'good is reported, and what was read before goes on.',
  )

export const jwt = z
  .strictObject({
    keys: key(
      pathOrOff(),
      '',
      'Public keys that tokens are signed with: a JWKS file, or one PEM file. Read again when it changes.',
    ),
    issuer: key(text(), '', 'What `iss` has to be; needed where `keys` is set.'),
    audience: key(text(), '', 'What `aud` has to hold; needed where `keys` is set.'),
    identity: key(filled(), 'sub', 'The claim that names the user, as `tenant/user` or `user`.'),
  })
  .superRefine((section, context) => {
    if (section.keys === '') return
    for (const path of ['issuer', 'audience'] as const) {
      if (section[path] !== '') continue
      const message = 'is missing: without it `jwt.keys` would let in tokens that were made for others'
      context.addIssue({ code: 'custom', path: [path], params: { also: 'keys' }, message })
    }
  })
  .describe('JSON Web Tokens that another system issues, for the method `token`. Off unless `keys` is set.')
