/** The console in a real browser, Debian's Chromium, over a server as built that the real protocol of gmetric feeds. */

import { createSocket, type Socket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { gmetricPacket, join, str, u32 } from '../../support/bytes.ts'
import { freePort } from '../../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'

/** Another name of this machine: a page of it comes from elsewhere, as a browser sees it. */
export const ELSEWHERE = 'cinnabar.test'
export const CHROMIUM = '/usr/bin/chromium-headless-shell'

export const missing = !existsSync(CHROMIUM)
/** After the name of tests that are skipped. */
export const howTo = missing ? ' (not installed: apt-get install --no-install-recommends chromium-headless-shell)' : ''

/** What a browser logs by itself while a server is away, or after an answer that is an error: no fault of the page. */
const NETWORK = /^(WebSocket connection to|Failed to load resource)/

export class ConsoleRig {
  readonly server: ServerProcess
  /** What the pages threw or logged as errors. */
  readonly faults: string[] = []
  readonly #browser: Browser
  readonly #udpPort: number
  /** Those that were reported; each has an address of its own, by which Ganglia tells hosts apart. */
  readonly #hosts = new Set<string>()
  readonly #udp: Socket = createSocket('udp4')

  private constructor(server: ServerProcess, browser: Browser, udpPort: number) {
    this.server = server
    this.#browser = browser
    this.#udpPort = udpPort
  }

  /** `toml`: further sections of the configuration. */
  static async start(toml = ''): Promise<ConsoleRig> {
    const udpPort = await freePort()
    const server = new ServerProcess(
      `[http]\nhosts = ["${ELSEWHERE}"]\n[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n${toml}`,
      { http: await freePort() },
    )
    const args = ['--no-sandbox', `--host-resolver-rules=MAP ${ELSEWHERE} 127.0.0.1`]
    const [browser] = await Promise.all([chromium.launch({ executablePath: CHROMIUM, args }), server.start()])
    return new ConsoleRig(server, browser, udpPort)
  }

  async end(): Promise<void> {
    this.#udp.close()
    await this.#browser.close()
    await this.server.remove()
  }

  /** A new tab, without anything that another one has stored. */
  async tab({ width = 1280, height = 900, dark = false } = {}): Promise<Page> {
    const page = await this.#browser.newPage({
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      // Of a proxy, whose certificate nobody has signed.
      ignoreHTTPSErrors: true,
    })
    page.on('pageerror', (error) => this.faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error' && !NETWORK.test(message.text())) this.faults.push(message.text())
    })
    return page
  }

  /** Opens the console at a view, such as `#/channels`. */
  async open(page: Page, view = '', host = '127.0.0.1') {
    return await page.goto(`http://${host}:${this.server.httpPort}/${view}`)
  }

  async signIn(page: Page, password = PASSWORD, identity = 'admin'): Promise<void> {
    await page.fill('[name=identity]', identity)
    await page.fill('[name=password]', password)
    await page.click('button.first')
  }

  /**
   * Sends a value as `gmetric --spoof` does: of another host, with its type, unit and slope (1: it only grows). `port`: where another
   * server listens for it.
   */
  async report(
    host: string,
    name: string,
    value: number | string,
    { type = 'double', unit = '', slope = 3, port = this.#udpPort } = {},
  ) {
    const about = join(str(`${this.#addressOf(host)}:${host}`), str(name), u32(1))
    const metadata = [str(type), str(name), str(unit), u32(slope), u32(60), u32(0), u32(0)]
    const packets = [join(u32(128), about, ...metadata), join(u32(133), about, str('%s'), str(String(value)))]
    for (const packet of packets) {
      await new Promise((resolve) => this.#udp.send(packet, port, '127.0.0.1', resolve))
    }
  }

  #addressOf(host: string): string {
    this.#hosts.add(host)
    return `10.0.0.${[...this.#hosts].indexOf(host) + 1}`
  }

  /** Sends one value as gmetric does. */
  async push(name: string, value: number): Promise<void> {
    const packet = gmetricPacket('double', name, String(value))
    await new Promise((resolve) => this.#udp.send(packet, this.#udpPort, '127.0.0.1', resolve))
  }
}

interface ConsoleFixtures {
  readonly rig: ConsoleRig
  /** Checks that no page has thrown, or logged an error. */
  readonly isFaultless: undefined
  readonly tab: Page
  readonly page: Page
}

/**
 * The `it` of a file, over a server with `toml` in its configuration. `page` is the same tab for all tests, in which nobody is signed
 * in: what it has stored stays, as for somebody who comes back. A test that changes more of a tab has one of its own.
 */
export function consoleTests(toml = '') {
  return test.extend<ConsoleFixtures>({
    rig: [
      // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern what a fixture needs
      async ({}, use) => {
        const rig = await ConsoleRig.start(toml)
        await use(rig)
        await rig.end()
      },
      { scope: 'file' },
    ],
    isFaultless: [
      async ({ rig }, use) => {
        await use(undefined)
        expect(rig.faults.splice(0)).toEqual([])
      },
      { auto: true },
    ],
    tab: [
      async ({ rig }, use) => {
        const tab = await rig.tab()
        await use(tab)
        await tab.close()
      },
      { scope: 'file' },
    ],
    page: async ({ tab }, use) => {
      await tab.goto('about:blank')
      await use(tab)
    },
  })
}
