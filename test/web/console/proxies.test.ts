/** docs/operating.md#below-a-path-of-a-proxy: the console below a path of another site, through Debian's nginx and Caddy as configured there. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { Authority, type Issued } from '../../support/certificates.ts'
import { Child } from '../../support/child.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { consoleTests, ELSEWHERE, howTo, missing } from './rig.ts'

const DOCUMENT = readFileSync(new URL('../../../docs/operating.md', import.meta.url), 'utf8')
const UPSTREAM = '127.0.0.1:7651'
const SITE = 'monitor.example'

interface Site {
  readonly directory: string
  readonly port: number
}

interface Proxy {
  readonly program: string
  readonly package: string
  readonly args: readonly string[]
  /** Its configuration, with what the document shows of it. */
  readonly config: (shown: string, site: Site) => string
}

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: 'nginx',
    package: 'nginx-light',
    args: ['-p', '.', '-c', 'config', '-e', 'stderr'],
    config: (shown, { port }) => `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`).join('\n  ')}
  server {
    listen 127.0.0.1:${port} ssl;
    server_name ${SITE};
    ssl_certificate site.pem;
    ssl_certificate_key site.key;
    ${shown}
  }
}
`,
  },
  caddy: {
    program: 'caddy',
    package: 'caddy',
    args: ['run', '--config', 'config', '--adapter', 'caddyfile'],
    config: (shown, { port, directory }) => `
{
  admin off
  auto_https disable_redirects
}
${shown.replace(`${SITE} {`, `${SITE}:${port} {\n  bind 127.0.0.1\n  tls ${directory}/site.pem ${directory}/site.key`)}
`,
  },
}

const it = consoleTests()

/** Rejects if nobody listens on a port. */
async function listens(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.destroy()
}

// A browser and the proxies are not everywhere.
describe.skipIf(missing)(`below a path of a proxy${howTo}`, () => {
  let issued: Issued
  beforeAll(async () => {
    issued = await (await Authority.make()).server([ELSEWHERE])
  })

  describe.each(Object.entries(PROXIES))('%s', (name, { program, package: installs, args, config }) => {
    const hasIt = spawnSync('which', [program]).status === 0
    const directory = mkdtempSync(join(tmpdir(), `cinnabar-${name}-`))
    let child: Child | undefined
    afterAll(async () => {
      await child?.end('SIGTERM')
      rmSync(directory, { recursive: true })
    })

    const start = async (upstreamPort: number): Promise<string> => {
      const [, shown = ''] = new RegExp(`\`\`\`${name}\n([\\s\\S]*?)\`\`\``).exec(DOCUMENT) ?? []
      expect(shown).toContain(UPSTREAM)
      writeFileSync(join(directory, 'site.pem'), issued.cert)
      writeFileSync(join(directory, 'site.key'), issued.key)
      const port = await freePort()
      const text = config(shown, { directory, port })
      writeFileSync(
        join(directory, 'config'),
        text.replaceAll(UPSTREAM, `127.0.0.1:${upstreamPort}`).replaceAll(SITE, ELSEWHERE),
      )
      const proxy = new Child(program, args, { cwd: directory, env: { HOME: directory, XDG_DATA_HOME: directory } })
      child = proxy
      // A browser that has shown an error once takes the next visit for one to a place in the same page.
      await eventually(() => (proxy.isRunning ? listens(port) : undefined))
      expect(proxy.isRunning, proxy.errors).toBe(true)
      return `https://${ELSEWHERE}:${port}`
    }

    // A proxy is not on every machine.
    it.skipIf(!hasIt)(
      `has the page, what it loads, and the WebSocket${hasIt ? '' : ` (not installed: apt-get install --no-install-recommends ${installs})`}`,
      async ({ page, rig }) => {
        const address = await start(rig.server.httpPort)
        const urls: string[] = []
        page.on('request', (request) => urls.push(request.url()))
        page.on('websocket', (socket) => urls.push(socket.url()))
        const response = await page.goto(`${address}/cinnabar/#/channels`)
        expect(response?.headers()['content-security-policy']).toContain("default-src 'self'")
        await rig.signIn(page)
        await page.waitForSelector('h1:text-is("Channels")')
        expect(urls).toContain(`${address.replace('https', 'wss')}/cinnabar/monitor`)
        expect(urls.filter((url) => !url.includes(`${ELSEWHERE}:`) || !url.includes('/cinnabar/'))).toEqual([])

        // Without the last slash, and where the operator has pages at the root.
        await page.goto(`${address}/cinnabar`)
        await page.waitForSelector('[name=password]')
        expect(page.url()).toBe(`${address}/cinnabar/`)
        await page.goto(`${address}/cinnabar/console`)
        expect(page.url()).toBe(`${address}/cinnabar/console/`)
        await rig.signIn(page)
        await page.waitForSelector('.tiles strong')
        expect((await page.goto(`${address}/cinnabar/client.js`))?.status()).toBe(200)
      },
    )
  })
})
