/** The sections about connections: where the server listens, what it calls, and what both sides prove themselves with. */
import { z } from 'zod'
import { type SectionConfig, section } from '../kernel/config/schema.ts'
import {
  addressOrOff,
  destinations,
  duration,
  filledText,
  hostNames,
  integer,
  key,
  liveKey,
  networks,
  origins,
  pathOrOff,
  plainText,
  toggle,
} from '../kernel/config/value-types.ts'

export const listenSection = section(
  z
    .strictObject({
      tcp: key(addressOrOff(), '127.0.0.1:7650', 'The Monitoring Protocol over TCP.'),
      http: key(addressOrOff(), '127.0.0.1:7651', 'Health, and the Monitoring Protocol over WebSocket.'),
      tls: key(addressOrOff(), '', 'The Monitoring Protocol over TLS from the first byte on; needs `[tls]`.'),
      https: key(addressOrOff(), '', 'What `http` offers, over TLS (`https://`, `wss://`); needs `[tls]`.'),
    })
    .describe('Where consumers connect. Port 0 takes any free port.'),
)
export type ListenSection = SectionConfig<typeof listenSection>

export const tlsSection = section(
  z
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
      const needed = (['cert', 'key', 'client_ca', 'client_revoked'] as const).find((key) => section[key] !== undefined)
      if (needed === undefined) return
      if (section.cert === undefined) missing('cert', needed)
      if (section.key === undefined) missing('key', needed)
      if (section.client_ca === undefined && section.client_revoked !== undefined) {
        const message = 'says nothing without `tls.client_ca`: no client certificate is taken'
        context.addIssue({ code: 'custom', path: ['client_revoked'], params: { also: 'client_ca' }, message })
      }
    })
    .describe(
      '`cert` and `key` together switch TLS on: as the layer `tls` of `listen.tcp`, and for `listen.tls` and ' +
        '`listen.https`. All four files are looked at every second and read again when they change; one that is no ' +
        'good or cut off is reported, and what was read before goes on; [operating.md](operating.md) has the rules.',
    ),
)
export type TlsSection = SectionConfig<typeof tlsSection>

export const jwtSection = section(
  z
    .strictObject({
      keys: key(
        pathOrOff(),
        '',
        'Public keys that tokens are signed with: a JWKS file, or one PEM file. Read again when it changes.',
      ),
      issuer: key(plainText(), '', 'What `iss` has to be; needed where `keys` is set.'),
      audience: key(plainText(), '', 'What `aud` has to hold; needed where `keys` is set.'),
      identity: key(filledText(), 'sub', 'The claim that names the user, as `tenant/user` or `user`.'),
    })
    .superRefine((section, context) => {
      if (section.keys === undefined) return
      for (const path of ['issuer', 'audience'] as const) {
        if (section[path] !== '') continue
        const message = 'is missing: without it `jwt.keys` would let in tokens that were made for others'
        context.addIssue({ code: 'custom', path: [path], params: { also: 'keys' }, message })
      }
    })
    .describe('JSON Web Tokens that another system issues, for the method `token`. Off unless `keys` is set.'),
)
export type JwtSection = SectionConfig<typeof jwtSection>

export const httpSection = section(
  z
    .strictObject({
      allowed_origins: liveKey(origins(), [], 'Further origins whose pages may open the WebSocket.'),
      hosts: liveKey(
        hostNames(),
        [],
        'Further names under which browsers reach this server, such as that of a proxy. Addresses, `localhost`, the names ' +
          'of this machine and those of its certificate are known.',
      ),
      pages: key(
        pathOrOff(),
        '',
        'A directory whose files are served at `/`, as pages of your own; `/client.js` is there.',
      ),
      console: key(
        toggle(),
        true,
        'Whether the console is served at `/`, or at `/console/` if `pages` has an `index.html`.',
      ),
      requests_per_minute: key(
        integer(1, 1_000_000),
        6_000n,
        'HTTP requests that one address may make, those that open a WebSocket among them.',
      ),
    })
    .describe('What browsers may do.'),
)
export type HttpSection = SectionConfig<typeof httpSection>

export const metricsSection = section(
  z
    .strictObject({
      open_to: liveKey(
        networks(),
        ['127.0.0.0/8', '::1/128'],
        'Networks from which `GET /metrics` shows the figures of the server itself without a token; none if it is empty. ' +
          'They name no tenant, user, channel or source.',
      ),
    })
    .describe('What Prometheus scrapes: [prometheus.md](prometheus.md).'),
)
export type MetricsSection = SectionConfig<typeof metricsSection>

export const querySection = section(
  z
    .strictObject({
      max_samples: liveKey(integer(1, 1_000_000_000), 50_000_000n, 'Samples that one query may read.'),
      timeout: liveKey(duration('1s', '1h'), '2m', 'How long a query may take; it may ask for less itself.'),
      slow: liveKey(
        duration('0s', '1h'),
        '10s',
        'Queries that take longer are logged, at most one a minute, and how many were not; 0s logs none.',
      ),
      max_concurrent: key(
        integer(1, 64),
        4n,
        'Queries of a tenant that are worked on at the same time; up to 64 more wait for their turn.',
      ),
    })
    .describe(
      'Expressions of PromQL over the history, asked by HTTP or by the Monitoring Protocol: [promql.md](promql.md).',
    ),
)
export type QuerySection = SectionConfig<typeof querySection>

export const dialSection = section(
  z
    .strictObject({
      allow: liveKey(
        destinations(),
        [],
        'Destinations that channels may be defined with, and notifiers that users put, like `tls://*.example.org:7650`, `tcp://10.1.2.3:*` or `webhook+https://*.example.org`.',
      ),
      ca: key(
        pathOrOff(),
        '',
        'Authorities for the certificates of `tls://` and `wss://`; else those of Node. Channels without a secret need it.',
      ),
    })
    .describe(
      'Connections that the producer makes for users: to consumers (DEF_CHANNEL), and for `notify.put`. Nothing may be dialled unless it is here.',
    ),
)
export type DialSection = SectionConfig<typeof dialSection>
