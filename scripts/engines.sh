#!/bin/sh
# Fetches into .tools the engines that make engines runs, without root, by Go and Maven where they are installed.
# Does nothing for what is there already; may be stopped anywhere and started again. A failure leaves that engine out.
set -u
cd "$(dirname "$0")/.."

BEAM=$(.venv/bin/python -c 'from importlib.metadata import version; print(version("apache-beam"))')

say() { printf 'engines: %s\n' "$*" >&2; }

# Prism, Beam's local runner: its own command, of the version of the package.
prism() {
    [ "$(cat .tools/prism.version 2>/dev/null)" = "$BEAM" ] && return
    command -v go >/dev/null || { say "Prism is left out: it needs Go, to build Beam's own command; install Go (go.dev/dl)."; return; }
    say "building Prism $BEAM, a few minutes"
    GOBIN=$PWD/.tools go install "github.com/apache/beam/sdks/v2/go/cmd/prism@v$BEAM" || { say "Prism is left out: go install failed; what it said stands above."; return; }
    printf '%s\n' "$BEAM" >.tools/prism.version
}

# YARN: its two daemons, of the version of Hadoop that PySpark brings as a client.
yarn() {
    hadoop=$(ls .venv/lib/python3*/site-packages/pyspark/jars/hadoop-client-api-*.jar | sed 's/.*-api-//; s/\.jar$//')
    [ "$(cat .tools/yarn/version 2>/dev/null)" = "$hadoop" ] && return
    command -v mvn >/dev/null || { say "YARN is left out: it needs Maven, to fetch Hadoop's artifacts; install Maven (maven.apache.org)."; return; }
    say "fetching YARN $hadoop"
    rm -rf .tools/yarn && mkdir -p .tools/yarn
    {
        echo '<project><modelVersion>4.0.0</modelVersion><groupId>none</groupId><artifactId>yarn</artifactId><version>1</version><dependencies>'
        for name in resourcemanager nodemanager timelineservice; do
            echo "<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-yarn-server-$name</artifactId><version>$hadoop</version></dependency>"
        done
        echo "<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-common</artifactId><version>$hadoop</version></dependency>"
        echo '</dependencies></project>'
    } >.tools/yarn/pom.xml
    mvn -q -B -f .tools/yarn/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$PWD/.tools/yarn/jars" ||
        { say "YARN is left out: Maven failed; what it said stands above."; return; }
    printf '%s\n' "$hadoop" >.tools/yarn/version
}

# Flink with Beam's job server, as the jars of its Maven artifact: of the package's version, or the newest whose parts
# every mirror has.
flink() {
    [ -e .tools/flink/complete ] && return
    command -v mvn >/dev/null || { say "Flink is left out: it needs Maven, which fetches its jars; install Maven and Java 17."; return; }
    for beam in $BEAM 2.62.0; do
        say "fetching Flink 1.19 and its job server of Beam $beam"
        rm -rf .tools/flink
        mkdir -p .tools/flink
        cat >.tools/flink/pom.xml <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>corpusveil</groupId><artifactId>flink</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.beam</groupId><artifactId>beam-runners-flink-1.19</artifactId><version>$beam</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-jdk14</artifactId><version>1.7.30</version></dependency>
  </dependencies>
</project>
POM
        if mvn --quiet --batch-mode --file .tools/flink/pom.xml dependency:copy-dependencies -DincludeScope=runtime \
            -DoutputDirectory="$PWD/.tools/flink" >.tools/flink/log; then
            touch .tools/flink/complete
            return
        fi
    done
    say "Flink is left out: Maven could not fetch it; what it said is in .tools/flink/log."
}

# Ray, a package.
ray() {
    .venv/bin/python -c "import ray" 2>/dev/null && return
    sh scripts/group.sh engines || say "Ray is left out: its package could not be installed; what was said stands above."
}

mkdir -p .tools
prism
yarn
flink
ray
