/**
 * E-mail, by nodemailer, which is loaded with the first one. Mails of one group of alerts are one thread, and one that is sent again has
 * the Message-ID that it had. What goes to another machine is encrypted.
 */
import type { SMTPTransportOptions } from 'nodemailer'
import { isOwnMachine } from '../../kit/config.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'
import { contentsOf, type ReadContents, tlsFrom } from '../../kit/io/address.ts'
import { isApproval } from './approval-alerts.ts'
import type { NotifierTable } from './bodies.ts'
import { viewLink } from './links.ts'
import { isFiring, type Notification, type NotifyAnswer, type NotifyDestination } from './notification.ts'
import { alertsHtml, alertsText, titleOf } from './texts.ts'

/** Ports without one in the URL: submission with STARTTLS, and with TLS from the beginning. */
const PORTS = { 'smtp:': 587, 'smtps:': 465 } as const

type EmailTable = Pick<
  NotifierTable,
  'name' | 'url' | 'from' | 'to' | 'username' | 'passwordFile' | 'ca' | 'cert' | 'key' | 'timeoutMs' | 'externalUrl'
> & {
  /** Of its files; `contentsOf` without it. */
  readonly read?: ReadContents | undefined
  /** Judges the mail server, and gives the only address that may be connected to; without it the name is resolved. */
  readonly address?: (() => Promise<string>) | undefined
}

export function emailDestination(table: EmailTable): NotifyDestination {
  const closing = new AbortController()
  return {
    async send(notification) {
      const { createTransport } = await import('nodemailer')
      const transport = createTransport(await transportOptions(table))
      let giveUp = (): void => {}
      const closed = new Promise<never>((_, reject) => {
        giveUp = () => reject(new Error('the notifier has ended'))
      })
      closing.signal.addEventListener('abort', giveUp)
      try {
        const { response, rejected } = await Promise.race([transport.sendMail(mailOf(table, notification)), closed])
        const others = rejected.length === 0 ? '' : `, and not for ${rejected.join(', ')}`
        return { verdict: 'taken', detail: response + others, waitMs: 0 }
      } catch (error) {
        return judged(error as SmtpError)
      } finally {
        closing.signal.removeEventListener('abort', giveUp)
        transport.close()
      }
    },
    close: () => closing.abort(),
  }
}

/** What nodemailer says of an answer. */
interface SmtpError extends Error {
  /** Which step has failed. */
  readonly code?: string
  /** Of the server: 4xx is for now, 5xx for ever. */
  readonly responseCode?: number
}

/** A mail whose text a server will never take is refused; what is wrong with logins and addresses is mended by somebody. */
function judged({ message, code, responseCode = 0 }: SmtpError): NotifyAnswer {
  const isRefused = code === 'EMESSAGE' && responseCode >= 500
  return { verdict: isRefused ? 'refused' : 'failed', detail: message, waitMs: 0 }
}

async function transportOptions(table: EmailTable): Promise<SMTPTransportOptions> {
  const { url, username, passwordFile, timeoutMs, read = contentsOf, address } = table
  const { protocol, hostname, port } = new URL(url.href)
  const isImplicit = protocol === 'smtps:'
  const host = hostname.replace(/^\[|\]$/g, '')
  const pass = passwordFile === undefined ? '' : ((await read(passwordFile)).split(/\r?\n/)[0] ?? '')
  return {
    // What names the server in its certificate is among the options of TLS.
    host: address === undefined ? host : await address(),
    port: port === '' ? PORTS[isImplicit ? 'smtps:' : 'smtp:'] : Number(port),
    secure: isImplicit,
    requireTLS: !isImplicit && !isOwnMachine(hostname),
    // A mail server of this machine often has a certificate of its own making.
    ignoreTLS: !isImplicit && isOwnMachine(hostname) && table.ca === undefined,
    tls: (await tlsFrom(table, host)) as SMTPTransportOptions['tls'],
    ...(username !== '' && { auth: { user: username, pass } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // A mail has what is written here, and nothing that a text in it might name.
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

function mailOf({ name, from, to, externalUrl }: EmailTable, notification: Notification) {
  const { key, groupLabels, atMs, alerts } = notification
  const link = alerts.every(isApproval) ? viewLink(externalUrl, alerts) : externalUrl
  const domain = /@([^@<>\s]+)>?\s*$/.exec(from)?.[1] ?? 'localhost'
  const thread = `<${fingerprintOf(groupLabels)}.${name}@${domain}>`
  return {
    from,
    to: [...to],
    subject: titleOf(notification),
    date: new Date(atMs),
    messageId: `<${key}.${name}@${domain}>`,
    inReplyTo: thread,
    references: [thread],
    text: `${alertsText(notification)}\n${link === '' ? '' : `\n${link}\n`}`,
    html: alertsHtml(notification, link),
    ...(isFiring(notification) && { priority: 'high' as const }),
    // RFC 3834: nobody's absence is to be answered to it.
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}
