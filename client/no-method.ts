/** Why there is no way to log in, and what would help. Loaded where it is to be told. */
import type { Proof } from './credentials.ts'
import type { Wire } from './transport.ts'

/** `auth`: the methods that the producer offers; `methods`: those that may be used with a password. */
export function whyNot(
  auth: readonly string[],
  methods: readonly string[],
  { encrypted, loopback, exporter }: Wire,
  proof: Proof,
): string {
  const offered = `the producer offers ${auth.join(', ') || 'nothing'}`
  const isClear = !encrypted && !loopback
  if ('token' in proof) return isClear ? couldBeRead('token') : `${offered}, and takes no token here`
  if ('certificate' in proof) {
    const needs = '`tls.cert` and `tls.key` and a producer that knows who signed them'
    return `${offered}; to log in with a certificate takes TLS, ${needs}`
  }
  if (isClear && auth.includes('password') && methods.includes('password')) return couldBeRead('password')
  if (auth.includes('scram-sha-256-plus') && methods.includes('scram-sha-256-plus') && !exporter) {
    return `${offered}; scram-sha-256-plus needs TLS 1.3, which there is none of here, or not within reach of a page`
  }
  return `${offered}; these credentials are for ${methods.join(', ')}`
}

function couldBeRead(what: string): string {
  return (
    `the ${what} could be read on the way, or by whoever answers there. Use tls:// or wss://, or the layer \`tls\` ` +
    '(`wrap`), and have the certificate verified'
  )
}
