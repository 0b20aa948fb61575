import { globSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { z } from "zod";
import { TABLE } from "../../lib/store/dynamodb/table.ts";
import { freshTable } from "../support/dynamodb.ts";
import { readSource } from "./imports.ts";
import { packageStage, type Resource, ROOT, runModule, temporaryFolder } from "./package.ts";

type Packaged = Awaited<ReturnType<typeof packageStage>>;

let folders: string[];
let dev: Packaged;
let prod: Packaged;

beforeAll(async () => {
  const [first, second] = [await temporaryFolder(), await temporaryFolder()];
  folders = [first, second];
  [dev, prod] = await Promise.all([packageStage("dev", first), packageStage("prod", second)]);
});

afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))));

const resource = (name: string, of = dev): Resource => {
  const found = of.template.Resources[name];
  if (!found) throw new Error(`The template has no ${name}.`);
  return found;
};

const resources = (type: string): [string, Resource][] =>
  Object.entries(dev.template.Resources).filter(([, each]) => each.Type === type);

describe("the table", () => {
  test("T05: expires by the attribute that the code writes", () => {
    expect(resource("SessionsTable").Properties["TimeToLiveSpecification"]).toEqual({
      AttributeName: TABLE.ttlAttribute,
      Enabled: true,
    });
  });

  test("has the key and the indexes that the code asks for", () => {
    expect(resource("SessionsTable").Properties).toMatchObject({
      TableName: "oneturn-dev",
      KeySchema: [
        { AttributeName: TABLE.partitionKey, KeyType: "HASH" },
        { AttributeName: TABLE.sortKey, KeyType: "RANGE" },
      ],
      GlobalSecondaryIndexes: [
        { IndexName: TABLE.indexes.byOwner },
        { IndexName: TABLE.indexes.byExpiry, Projection: { ProjectionType: "KEYS_ONLY" } },
      ],
    });
  });

  test("P06: outlives its stack and its replacement, and can be restored", () => {
    expect(resource("SessionsTable")).toMatchObject({
      DeletionPolicy: "Retain",
      UpdateReplacePolicy: "Retain",
      Properties: {
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        SSESpecification: { SSEEnabled: true },
      },
    });
  });

  test("P06: can't be deleted by a call in production", () => {
    const protection = (of: Packaged) =>
      resource("SessionsTable", of).Properties["DeletionProtectionEnabled"];
    expect([protection(dev), protection(prod)]).toEqual([false, true]);
  });
});

describe("the functions", () => {
  test("P06: may make the calls that the code makes, on this table, and no other", () => {
    const onTable = statements().filter(({ Resource }) => isDeepStrictEqual(Resource, TABLE_ARN));
    expect(onTable.flatMap(({ Action }) => Action).toSorted()).toEqual(actionsCalled());
  });

  test("P06: may query the indexes that the code asks, and beside that write their logs only", () => {
    const others = statements().filter(
      ({ Action, Resource }) => !isForLogs(Action) && !isDeepStrictEqual(Resource, TABLE_ARN),
    );
    expect(others).toEqual([
      {
        Effect: "Allow",
        Action: ["dynamodb:Query"],
        Resource: Object.values(TABLE.indexes).map((name) => ({
          "Fn::Sub": `\${SessionsTable.Arn}/index/${name}`,
        })),
      },
      {
        Effect: "Allow",
        Action: ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"],
        Resource: [":foundation-model/*", `\${AWS::AccountId}:inference-profile/*`].map(
          (model) => ({
            "Fn::Sub": `arn:\${AWS::Partition}:bedrock:*:${model}`,
          }),
        ),
      },
      // With which the schedule starts cleanup.
      { Effect: "Allow", Action: ["lambda:InvokeFunction"], Resource: ["", ":*"].map(cleanupArn) },
    ]);
  });

  test("H09: end before the gateway gives up on them", () => {
    expect(resource("HttpLambdaFunction").Properties["Timeout"]).toBeLessThan(29);
  });

  test("clean up every hour, and end before the next", () => {
    const schedules = resources("AWS::Scheduler::Schedule").map(([, { Properties }]) => Properties);
    expect(schedules).toMatchObject([
      {
        ScheduleExpression: "rate(1 hour)",
        State: "ENABLED",
        Target: { Arn: { "Fn::GetAtt": ["CleanupLambdaFunction", "Arn"] } },
      },
    ]);
    const { Timeout, MemorySize } = resource("CleanupLambdaFunction").Properties;
    expect({ Timeout, MemorySize }).toEqual({ Timeout: 300, MemorySize: 256 });
  });

  test.each(["HttpLambdaFunction", "CleanupLambdaFunction"])(
    "run on Node 24 with the table's name, and with stack traces that name the sources: %s",
    (name) => {
      expect(resource(name).Properties).toMatchObject({
        Runtime: "nodejs24.x",
        Architectures: ["arm64"],
        Environment: {
          Variables: { TABLE_NAME: { Ref: "SessionsTable" }, NODE_OPTIONS: "--enable-source-maps" },
        },
      });
    },
  );
});

test("no route but /ping is open to callers without a signature", () => {
  const routes = resources("AWS::ApiGateway::Method").map(([, { Properties }]) =>
    [
      Properties["HttpMethod"],
      pathOf(Properties["ResourceId"]),
      Properties["AuthorizationType"],
    ].join(" "),
  );
  expect(routes.toSorted()).toEqual([
    "ANY /v1 AWS_IAM",
    "ANY /v1/{proxy+} AWS_IAM",
    "GET /ping NONE",
  ]);
});

/** What is loaded later, and what bundles share. */
const CHUNKS = {
  // Bedrock's client with its token provider; the package behind openai-compatible, whose entry is called dist.
  http: [
    ...["bedrock", "bowser", "chunk", "dist"],
    ...["event-streams", "openai-compatible", "sso-oidc"],
  ],
  cleanup: ["bowser", "chunk", "event-streams"],
};

describe.each(["http", "cleanup"] as const)("the archive of %s", (name) => {
  let files: Map<string, Buffer>;

  beforeAll(async () => {
    files = await dev.zip(name);
  });

  test("P05: holds the function's bundle and nothing else", () => {
    const names = [...files.keys()].map((path) => path.replace(/-[0-9A-Z]{8}\./, "-*."));
    const chunks = CHUNKS[name].map((chunk) => `dist/${name}/${chunk}-*.mjs`);
    const modules = [`dist/${name}.mjs`, ...chunks];
    expect(new Set(names)).toEqual(new Set([...modules, ...modules.map((it) => `${it}.map`)]));
  });

  test("P02: imports nothing that isn't in it or in Node", () => {
    const modules = [...files].filter(([path]) => path.endsWith(".mjs"));
    const imports = modules.flatMap(([path, bytes]) => readSource(path, bytes.toString()).imports);
    const outside = imports.filter(({ to, kind }) =>
      kind === "file" ? !files.has(to) : !isBuiltin(to),
    );
    expect(outside).toEqual([]);
  });

  test("P04: has source maps without the sources", () => {
    const maps = [...files].filter(([path]) => path.endsWith(".map"));
    expect(maps.filter(([, bytes]) => bytes.includes("sourcesContent"))).toEqual([]);
  });
});

describe("in plain Node, unpacked alone", () => {
  const run = async (name: string, text: string, env: NodeJS.ProcessEnv): Promise<unknown> => {
    const cwd = await temporaryFolder();
    folders.push(cwd);
    for (const [path, bytes] of await dev.zip(name)) {
      await mkdir(dirname(join(cwd, path)), { recursive: true });
      await writeFile(join(cwd, path), bytes);
    }
    return JSON.parse(await runModule(text, { cwd, env }));
  };

  test("P01, P03: http answers GET /ping, from a handler that Lambda accepts", async () => {
    const text = `import { handler } from "./dist/http.mjs";
      const event = ${JSON.stringify(pingEvent)};
      const context = { awsRequestId: "request", getRemainingTimeInMillis: () => 28000 };
      const { statusCode, body } = await handler(event, context);
      console.log(JSON.stringify({ parameters: handler.length, statusCode, body: JSON.parse(body) }));`;
    const answer = await run("http", text, deployedEnvironment("HttpLambdaFunction"));
    expect(answer).toMatchObject({ statusCode: 200, body: { status: "ok" } });
    expect(answer).toHaveProperty(
      "parameters",
      expect.toSatisfy((count: number) => count <= 2),
    );
  });

  test("P01, P03: cleanup looks through the table, from a handler that Lambda accepts", async () => {
    const endpoint = inject("dynalite");
    const { tableName } = await freshTable(endpoint);
    const text = `import { handler } from "./dist/cleanup.mjs";
      console.log = () => {};
      const report = await handler({}, { getRemainingTimeInMillis: () => 300000 });
      console.info(JSON.stringify({ parameters: handler.length, report }));`;
    const answer = await run("cleanup", text, {
      ...deployedEnvironment("CleanupLambdaFunction"),
      DYNAMODB_ENDPOINT: endpoint,
      TABLE_NAME: tableName,
    });
    expect(answer).toEqual({
      parameters: 2,
      report: { sessions: 0, items: 0, kept: 0, failed: 0 },
    });
  });
});

const pingEvent = {
  resource: "/ping",
  path: "/ping",
  httpMethod: "GET",
  headers: { Accept: "*/*", Host: "api.example.com" },
  multiValueHeaders: { Accept: ["*/*"], Host: ["api.example.com"] },
  queryStringParameters: null,
  multiValueQueryStringParameters: null,
  pathParameters: null,
  stageVariables: null,
  requestContext: {
    accountId: "123456789012",
    apiId: "api",
    authorizer: null,
    httpMethod: "GET",
    identity: { sourceIp: "192.0.2.1", userAgent: null },
    path: "/dev/ping",
    protocol: "HTTP/1.1",
    requestId: "request",
    requestTimeEpoch: 1796094245678,
    resourceId: "resource",
    resourcePath: "/ping",
    stage: "dev",
  },
  body: null,
  isBase64Encoded: false,
};

/** What the template gives the function, and what Lambda adds. */
function deployedEnvironment(name: string): NodeJS.ProcessEnv {
  const { Environment } = resource(name).Properties;
  const { Variables } = z.object({ Variables: z.looseObject({}) }).parse(Environment);
  const settings = Object.entries(Variables).filter(([, value]) => typeof value === "string");
  return {
    ...z.record(z.string(), z.string()).parse(Object.fromEntries(settings)),
    TABLE_NAME: "oneturn-dev",
    AWS_REGION: "eu-west-1",
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_SESSION_TOKEN: "token",
  };
}

const role = z.object({
  Policies: z.array(
    z.object({
      PolicyDocument: z.object({
        Statement: z.array(
          z.object({ Effect: z.string(), Action: z.array(z.string()), Resource: z.unknown() }),
        ),
      }),
    }),
  ),
});

const statements = () =>
  resources("AWS::IAM::Role").flatMap(([, { Properties }]) =>
    role.parse(Properties).Policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement),
  );

const TABLE_ARN = { "Fn::GetAtt": ["SessionsTable", "Arn"] };

const cleanupArn = (suffix: string) => ({
  "Fn::Sub": `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:oneturn-dev-cleanup${suffix}`,
});

const isForLogs = (actions: string[]): boolean => actions.every((each) => each.startsWith("logs:"));

/** The actions behind the document client's commands, as far as lib uses them. */
function actionsCalled(): string[] {
  const texts = globSync("lib/store/**/*.ts", { cwd: ROOT }).map((path) =>
    readFileSync(join(ROOT, path), "utf8"),
  );
  const commands = texts.flatMap((text) => [...text.matchAll(/new (\w+)Command\(/g)]);
  const names = new Set(commands.map(([, name]) => (name === "Query" ? name : `${name}Item`)));
  return [...names].map((name) => `dynamodb:${name}`).toSorted();
}

/** A gateway resource's path, put together from its parents. */
function pathOf(id: unknown): string {
  const reference = z.object({ Ref: z.string() }).safeParse(id);
  if (!reference.success) return "";
  const { ParentId, PathPart } = resource(reference.data.Ref).Properties;
  return `${pathOf(ParentId)}/${String(PathPart)}`;
}
