/** `cinnabar mcp`: how agents get at a server. What they need is a package of its own, which the server does not carry. */
import type { Command } from 'commander'
import type { Cli } from '../session.ts'

const text = (
  program: string,
) => `Agents ask a server over the Model Context Protocol through cinnabar-mcp, which is a package of its own.

Get it, in a clone of Cinnabar after \`npm install\`:
  npm pack ./packages/mcp
  npm install --global ./cinnabar-mcp-0.1.0.tgz

Make a user for the agent, and a token, as an admin. The token is all that the agent may do:
  ${program} user add agent --no-password
  ${program} token add agent --out agent.token

Then tell the agent's program to start it:
  {
    "mcpServers": {
      "cinnabar": {
        "command": "npx",
        "args": ["cinnabar-mcp", "--url", "tcp://127.0.0.1:7650", "--token-file", "/path/to/agent.token"]
      }
    }
  }

docs/mcp.md has the settings of common programs, serving over HTTP, and what the tools do.`

export function addMcp(program: Command, { terminal }: Cli): void {
  program
    .command('mcp')
    .description('say how agents get metrics and controls over the Model Context Protocol')
    .action(() => terminal.print(text(terminal.program)))
}
